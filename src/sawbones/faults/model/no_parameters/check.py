"""A model that holds no parameters: nothing is registered with it

## What it sees
The record of a crash: an optimizer got an empty list, a layer was assigned before
super().__init__() was called, or an attribute is missing because the class has no __init__ of its
own but a method that is nearly called so. Says which lists hold modules that nobody registered.
Fires on the line of the crash.

## Why it matters
The script ends here.

## Looks like
ValueError: optimizer got an empty parameter list, or AttributeError: cannot assign module before
Module.__init__() call.

## Example
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(5, 5), nn.Linear(5, 1)]

## Use instead
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 1)])

## Confirm it
Nothing is left to confirm: the number of parameters is in the record.

## False alarms
A list that is empty for another reason (a filter that keeps nothing) is named without a guess at
the class.

## References
Layers kept in a plain Python list; def __int__ for __init__.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, Crash, CrashFrame, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_origins import sites, trace_of
from sawbones.stats.crashes import crash, frame_of, inner_frame, makers

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loop.api-misuse", "model.unregistered-module")
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    optimizer = frame_of(died, "__init__", "torch.optim.optimizer")
    setting = frame_of(died, "__setattr__", "torch.nn.modules.module")
    getting = frame_of(died, "__getattr__", "torch.nn.modules.module")
    if optimizer is None and setting is None and getting is None:
        raise NothingToJudge("no optimizer, and no attribute of a module, was refused")
    if optimizer is not None:
        groups = optimizer.values.get("param_groups") or optimizer.values.get("params")
        empty = groups is not None and groups.kind == "sequence" and not groups.length
        if empty:
            yield _empty(run, inner_frame(died))
    elif setting is not None:
        module = setting.values.get("self")
        if module is not None and module.settings.get("not_initialised"):
            yield _no_super(run, inner_frame(died), module)
    elif getting is not None:
        yield from _no_attribute(run, died, getting.values.get("self"))


def _model(frame: CrashFrame) -> tuple[str, Bound] | None:
    """The module whose parameters were given: of the names that the line reads."""
    words = set(re.findall(r"\w+", frame.site.code))
    read = {name.split(".")[0] for a in frame.assignments if a.name in words for name in a.reads}
    modules = [(n, b) for n, b in frame.values.items() if b.kind == "module"]
    named = [m for m in modules if m[0] in words] or [m for m in modules if m[0] in read]
    return named[0] if named else None


def _near_init(module: Bound) -> str:
    """A method that is nearly called __init__, in a class that has none."""
    methods = [str(m) for m in module.settings.get("methods") or ()]
    if "__init__" in methods:
        return ""
    near = get_close_matches("__init__", methods, 1)
    return near[0] if near else ""


def _empty(run: Run, frame: CrashFrame) -> Finding:
    found = _model(frame)
    name, module = found if found is not None else ("the model", None)
    if module is not None and module.settings.get("num_parameters"):
        return _used_up(run, frame, name, module)
    loose = (module.settings.get("modules_in_plain_containers") if module else None) or []
    near = _near_init(module) if module is not None else ""
    not_run = (module.settings.get("methods_not_run") if module else None) or []
    local = (module.settings.get("local_layers") if module else None) or []
    built = module.built.site if module is not None and module.built is not None else None
    sites: list[Site | None] = [built, frame.site]
    lines = [a.site for a in makers(run, name)]
    if loose:
        because = f"its layers stand in a plain list ({', '.join(loose)}), which registers nothing"
        fix = f"Keep them in nn.ModuleList: self.{loose[0]} = nn.ModuleList(...)."
        sites = [_line(module, loose[0]), *sites]
    elif near:
        because = f"the class {module.cls if module else ''} calls its constructor {near}"
        fix = f"Rename {near} to __init__ (two underscores on both sides)."
        sites = [_line(module, near), *sites]
    elif not_run:
        because = f"the layers are made in {not_run[0]}, which has not run"
        fix = f"Call self.{not_run[0]}() in __init__, after super().__init__()."
        sites = [_line(module, not_run[0]), *sites]
    elif local:
        because = f"the constructor keeps its layers under local names ({', '.join(local[:4])})"
        fix = f"Make them attributes: self.{local[0]} = ..., and use self.{local[0]} in forward."
        sites = [_line(module, local[0]), *sites]
    else:
        because = f"{name} holds no parameter" if module is not None else ""
        fix = "Give the optimizer parameters: a module whose layers are attributes of it."
    return explained(
        run,
        f"The optimizer is given no parameter: {name} registers none",
        (*sites, *lines[:1]),
        Fix(fix),
        expected="at least one parameter",
        got="none",
        because=because,
        sizes=[Size(name, "0 parameters", module.cls)] if module is not None else [],
        exactly=(0, 1),
    )


def _used_up(run: Run, frame: CrashFrame, name: str, module: Bound) -> Finding:
    """The model has parameters; what is made of them holds none."""
    operands = frame.expression.operands if frame.expression is not None else ()
    given = next((o for o in operands if o.bound is not None), None)
    once = given is not None and given.bound is not None and given.bound.cls == "generator"
    count = int(module.settings["num_parameters"])
    because = "a filter kept none of them, or none of them needs a gradient"
    fix = "Choose parameters by a condition that some of them meet."
    if once and given is not None:
        because = f"{given.text} can be gone through once, and that has been done before"
        fix = f"Keep a list: {given.text} = list({name}.parameters())."
    frozen = [] if module.settings.get("num_trained") else list(trace_of(run, "frozen")[-2:])
    if frozen:
        because = f"all of them are frozen (line {frozen[0].site.line}: {frozen[0].text})"
        fix = (
            "Freeze before the layers that are to learn are put in, or let theirs learn again "
            f"afterwards: for p in {name}.<layer>.parameters(): p.requires_grad = True."
        )
    return explained(
        run,
        f"The optimizer is given no parameter, although {name} holds {count}",
        (
            *sites(*frozen),
            *(a.site for a in (makers(run, given.text) if given else [])[:1]),
            frame.site,
        ),
        Fix(fix),
        expected="at least one parameter",
        got="none",
        because=because,
        sizes=[Size(name, f"{count} parameters", module.cls)],
        exactly=(0, 1),
    )


def _line(module: Bound | None, name: str) -> Site | None:
    return module.lines.get(name) if module is not None else None


def _no_super(run: Run, frame: CrashFrame, module: Bound) -> Finding:
    return explained(
        run,
        f"{module.cls} assigns a layer before nn.Module is set up",
        (frame.site,),
        Fix(f"Call super().__init__() first in the constructor of {module.cls}."),
        expected="super().__init__() before the first assignment of a layer",
        got="none yet",
        because="nn.Module keeps layers and parameters in tables that its __init__ makes",
        exactly=(0, 1),
    )


def _no_attribute(run: Run, died: Crash, module: Bound | None) -> Iterator[Finding]:
    near = _near_init(module) if module is not None else ""
    if module is None or not near:
        return
    frame = inner_frame(died)
    built = module.built.site if module.built is not None else None
    yield explained(
        run,
        f"{module.cls} has no constructor: {near} is never called",
        (_line(module, near), built, frame.site),
        Fix(f"Rename {near} to __init__ (two underscores on both sides)."),
        expected="a method __init__ that makes the layers",
        got=f"a method {near}",
        because="Python calls __init__ and nothing else when an object is made",
        exactly=(0, 1),
    )
