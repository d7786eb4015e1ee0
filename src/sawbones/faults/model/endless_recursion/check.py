"""A module that holds itself, or a method that calls itself without end

## What it sees
The record of a crash by too deep a recursion: whether a module is among its own submodules (by
which attributes one comes back to it), else the function of the script that stands in the traceback
again and again. Fires on the step of the crash.

## Why it matters
The script ends here, mostly before the first step.

## Looks like
RecursionError: maximum recursion depth exceeded, at model.train(), model.to(device) or print(model).

## Example
    class Head(nn.Module):
        def link(self, model):
            self.parent = model  # and model.head is this one

## Use instead
    class Head(nn.Module):
        def link(self, model):
            self.parent = [model]  # a list registers nothing

## Confirm it
Nothing is left to confirm: the circle is in the record.

## False alarms
Only a recursion that Python ended is looked at.

## References
A sub-model that keeps its parent; self.modules(), which begins with self.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, Crash, CrashFrame, Finding, Fix, Run, Size
from sawbones.stats.crashes import crash, inner_frame

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loop.api-misuse",)
EXPERIMENT = None
_WHOLE_TREE = ("modules", "named_modules")
_AGAIN = 3  # times that a line stands among the last frames


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    if "RecursionError" not in died.classes:
        raise NothingToJudge("the script did not end in a recursion")
    circular = next(_circular(died), None)
    if circular is not None:
        yield _held(run, died, circular)
        return
    lines = Counter(f.site.line for f in died.frames if f.user)
    line, times = lines.most_common(1)[0] if lines else (0, 0)
    if times >= _AGAIN:
        frame = next(f for f in died.frames if f.user and f.site.line == line)
        yield _called(run, frame)


def _circular(died: Crash) -> Iterator[Bound]:
    for frame in died.frames:
        operands = frame.expression.operands if frame.expression is not None else ()
        bounds = [*frame.values.values(), *(o.bound for o in operands if o.bound is not None)]
        yield from (b for b in bounds if b.kind == "module" and b.settings.get("holds_itself"))


def _held(run: Run, died: Crash, module: Bound) -> Finding:
    path = str(module.settings["holds_itself"])
    first, _, last = path.rpartition(".")
    inner = f"its submodule {first}" if first else "it"
    return explained(
        run,
        f"{module.cls} holds itself as a submodule: {path}",
        (
            *(module.lines[key] for key in ("circle", last) if key in module.lines),
            inner_frame(died).site,
            module.built.site if module.built is not None else None,
        ),
        Fix(
            f"Keep the module that {last} stands for out of the tree: in a list "
            f"(self.{last} = [model]), or give it to forward as an argument."
        ),
        expected="modules that form a tree",
        got=f"a circle: {module.cls}.{path} is {module.cls} again",
        because=f"{inner} keeps it as the attribute {last}, and nn.Module registers every module "
        "that is set as an attribute",
        sizes=[Size(f"{module.cls}.{path}", module.cls, "the same object")],
    )


def _called(run: Run, frame: CrashFrame) -> Finding:
    name = frame.site.function
    trees = [a for a in frame.assignments if set(a.calls) & set(_WHOLE_TREE)]
    if trees:
        because = f"{trees[0].text} (line {trees[0].site.line}) gives the module itself first"
        fix = "Go over self.children() in its place, or leave out the module itself."
    else:
        because = f"{frame.site.code} (line {frame.site.line}) leads back to {name} each time"
        fix = f"Give {name} a case in which it does not call itself."
    return explained(
        run,
        f"{name} calls itself without end",
        (frame.site, *(a.site for a in trees[:1])),
        Fix(fix),
        expected=f"a call of {name} that comes to an end",
        got="the same line again and again",
        because=because,
    )
