"""A call of the wrong library or in the wrong form

## What it sees
The record of a crash at a call: NumPy asked of a tensor that needs a gradient or lies on a device,
an array given to a layer, a module class called with values instead of an instance, a method that
only the other library has, an attribute that is called, arguments that the function does not take,
a list of tensors where numbers are taken. What a trainer or a model of a library refuses by a raise
of its own is likely, what else ends inside of it suspected. Fires on the step of the crash.

## Why it matters
The script ends here.

## Looks like
RuntimeError: Can't call numpy() on Tensor that requires grad, TypeError: got an unexpected keyword
argument, or RuntimeError: Boolean value of Tensor with more than one value is ambiguous.

## Example
    loss = nn.CrossEntropyLoss(scores, labels)

## Use instead
    loss = nn.CrossEntropyLoss()(scores, labels)

## Confirm it
Nothing is left to confirm: what the call takes and what it was given are in the record.

## False alarms
Names that were overwritten, values that were not unpacked, shapes and dtypes are named by faults of
their own, which stand before this one.

## References
nn.ReLU(x) where nn.ReLU()(x) or torch.relu(x) is meant.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from difflib import get_close_matches
from math import prod

import numpy as np

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import (
    Bound,
    CrashFrame,
    Expression,
    Finding,
    Fix,
    Operand,
    Run,
    Size,
)
from sawbones.stats.crash_origins import samples_returned
from sawbones.stats.crash_shapes import written
from sawbones.stats.crash_words import axis_of_one, broken_sizes, spoken_of
from sawbones.stats.crashes import (
    Given,
    callers,
    crash,
    deliberate,
    frame_of,
    inner_frame,
    library_frames,
    makers,
    refusal,
)

NEEDS = ("crash", "crash_record")
EXPLAINS = ()
EXPERIMENT = None
_NOT_CALLABLE = re.compile(r"'(\w[\w.]*)' object is not callable")
_KINDS = ("call", "attribute", "subscript")
_VALUES = ("tensor", "number", "text", "sequence", "mapping", "array", "none")


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    frame = inner_frame(died)
    expression = frame.expression
    if deliberate(died) or expression is None or expression.kind not in _KINDS:
        raise NothingToJudge("the script did not end at a call, an attribute or an index")
    found = (
        _needs_gradient(run, frame, expression)
        or _class_called(run, frame, expression)
        or _not_an_instance(run, frame, expression)
        or _other_library(run, frame, expression)
        or _of_nothing(run, frame, expression)
        or _no_such_layer(run, frame)
        or _no_index(run, frame, expression)
        or _tensor_of_tensors(run, frame, expression)
        or _not_a_tensor(run)
        or _result_called(run, frame, expression)
        or _not_callable(run, frame, expression)
        or _arguments(run, frame, expression)
        or _settings(run, frame, expression)
    )
    if found is not None:
        yield found


def _needs_gradient(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """NumPy on a tensor of the graph, or on another device."""
    arrays = [f for f in library_frames(crash(run)) if f.site.function in ("__array__", "numpy")]
    bound = arrays[-1].values.get("self") if arrays else None
    name = next((o.text for o in expression.operands if _same(o.bound, bound)), "")
    if bound is None and expression.name == "numpy" and expression.operands:
        bound, name = expression.operands[0].bound, expression.operands[0].text
    if bound is None or bound.kind != "tensor":
        return None
    if not bound.requires_grad and bound.device == "cpu":
        return None
    if not name and not any(_holds(o.bound, bound) for o in expression.operands):
        return _somewhere_inside(run, frame, expression, bound)
    listed = [o for o in expression.operands if _holds(o.bound, bound)]
    if listed:
        return _list_of_graphs(run, frame, listed[0], bound)
    name = name or "the tensor"
    name = f"({name})" if " if " in name else name
    what = "needs a gradient" if bound.requires_grad else f"lies on {bound.device}"
    way = f"{name}.detach().cpu().numpy()" if bound.device != "cpu" else f"{name}.detach().numpy()"
    old = f"{name}.numpy()"
    change = (old, way) if old in frame.site.code else None
    return explained(
        run,
        f"NumPy is given {name}, which {what}",
        (frame.site, *(a.site for a in makers(run, name)[:1])),
        Fix(f"Take it out of the graph first: {way}.", replace=change),
        expected="a tensor on the CPU that needs no gradient",
        got=f"{name}, which {what}",
        because="NumPy knows no graph: what it computes could have no gradient",
        sizes=[Size(name, written(bound.shape), bound.node or bound.device)],
    )


def _somewhere_inside(run: Run, frame: CrashFrame, expression: Expression, bound: Bound) -> Finding:
    """Values that NumPy goes over: the line that gives them keeps their graphs."""
    given = expression.operands[0].text if expression.operands else expression.text
    made = [a for a in makers(run, given) if a.text]
    what = "need a gradient" if bound.requires_grad else f"lie on {bound.device}"
    way = ".item()" if not bound.shape else ".detach().cpu()"
    return explained(
        run,
        f"NumPy is given tensors that {what}: {given}",
        (frame.site, *(a.site for a in made[:2])),
        Fix(
            f"Make plain values of them where they come from: {way} on what is returned or kept "
            f"there{f' (line {made[0].site.line}: {made[0].text})' if made else ''}."
        ),
        expected="numbers, or tensors on the CPU that need no gradient",
        got=f"{given}, which holds a tensor of {bound.node or bound.device}",
        because="each of the tensors still holds its graph" if bound.requires_grad else "",
    )


def _holds(bound: Bound | None, item: Bound) -> bool:
    return bound is not None and bound.kind == "sequence" and item in bound.items


def _list_of_graphs(run: Run, frame: CrashFrame, given: Operand, bound: Bound) -> Finding:
    """Tensors were kept in a list with their graphs: each is taken out where it is kept."""
    kept = [a for f, n in _frames_of(run, frame, given) for a in f.assignments if a.name == n]
    added = [a for a in kept if a.how == "append"] or kept
    value = added[-1].text if added and added[-1].how == "append" else "value"
    value = value if value.replace(".", "").isidentifier() else f"({value})"
    single = not bound.shape
    way = f"{value}.item()" if single else f"{value}.detach()"
    if bound.device != "cpu" and not single:
        way += ".cpu()"
    what = "need a gradient" if bound.requires_grad else f"lie on {bound.device}"
    return explained(
        run,
        f"NumPy is given {given.text}, a list of tensors that {what}",
        (*(a.site for a in added[-1:]), frame.site),
        Fix(f"Keep {given.text} as plain values: {given.text}.append({way})."),
        expected="numbers, or tensors on the CPU that need no gradient",
        got=f"{given.bound.length if given.bound else 0} tensors that {what}",
        because="each tensor in the list still holds its graph" if bound.requires_grad else "",
        sizes=[Size(f"{given.text}[0]", written(bound.shape), bound.node or bound.device)],
    )


def _frames_of(run: Run, frame: CrashFrame, given: Operand) -> list[tuple[CrashFrame, str]]:
    return list(callers(crash(run), frame, given.text)) if given.text in frame.values else []


def _same(bound: Bound | None, other: Bound | None) -> bool:
    return bound is not None and other is not None and bound.shape == other.shape


def _class_called(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """nn.CrossEntropyLoss(scores, labels): a class of modules that is given values."""
    called = expression.called
    if called is None or called.kind != "class" or not called.settings.get("abstract"):
        return None
    if not any(_is_value(o) for o in expression.operands):
        return None
    name = expression.text.partition("(")[0]
    given = ", ".join(o.text for o in expression.operands)
    fixed = f"{name}()({given})"
    local = expression.text in frame.site.code
    return explained(
        run,
        f"{name} is a class: it is made first and called with values afterwards",
        (frame.site,),
        Fix(
            f"Make it, then call it: {fixed}.", replace=(expression.text, fixed) if local else None
        ),
        expected="settings of the module",
        got=f"values ({given})",
        because=f"{name}(...) makes a module, and only the module takes values",
        sizes=_rows(expression),
    )


def _is_value(operand: Operand) -> bool:
    return operand.bound is not None and operand.bound.kind == "tensor"


def _rows(expression: Expression) -> list[Size]:
    return [
        Size(o.text, written(o.bound.shape), o.bound.dtype)
        for o in expression.operands
        if o.bound is not None and o.bound.kind == "tensor"
    ][:4]


def _not_an_instance(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """A method is asked of a class: optimizer = torch.optim.Adam; optimizer.step()."""
    first = expression.operands[0] if expression.operands else None
    if first is None or first.bound is None or first.bound.kind != "class":
        return None
    if expression.called is not None and expression.called.kind == "class":
        return None
    made = [a for a in makers(run, first.text) if a.text]
    root = made[0] if made else None
    return explained(
        run,
        f"{first.text} is the class {first.bound.cls}, not an object of it",
        (root.site if root is not None else None, frame.site),
        Fix(f"Make an object of it: {first.text} = {first.bound.cls}(...)."),
        expected=f"an object of {first.bound.cls}",
        got="the class itself",
        because=f"{root.site.code} (line {root.site.line})" if root is not None else "",
    )


def _other_library(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """A method of arrays asked of a tensor, or the other way round."""
    first = expression.operands[0] if expression.operands else None
    if "AttributeError" not in crash(run).classes or first is None or first.bound is None:
        return None
    kind = first.bound.kind
    if kind not in ("tensor", "array", "number") or library_frames(crash(run)):
        return None
    of_numpy = hasattr(np.ndarray, expression.name)
    if kind == "tensor" and of_numpy:
        fix = f"Use the method of tensors, or make it an array: {first.text}.detach().numpy()."
        because = f"{expression.name} is a method of NumPy's arrays"
    elif kind == "array" and not of_numpy:
        fix = f"Make it a tensor first: torch.from_numpy({first.text})."
        because = f"{expression.name} is no method of NumPy's arrays"
    elif kind == "number" and not hasattr(float, expression.name):
        fix = f"{first.text} is a plain number already: leave .{expression.name} out."
        because = f"{first.text} was made a Python number before"
    else:
        return None
    made = [a.site for a in makers(run, first.text)]
    return explained(
        run,
        f"{first.text} is a {first.bound.cls}, which has no {expression.name}",
        (frame.site, *made[:1]),
        Fix(fix),
        expected=f"a value that has {expression.name}",
        got=f"a {first.bound.cls} ({first.text})",
        because=because,
        sizes=[Size(first.text, written(first.bound.shape), first.bound.dtype)],
    )


def _of_nothing(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """An attribute or method is asked of None."""
    first = expression.operands[0] if expression.operands else None
    if first is None or first.bound is None or first.bound.kind != "none":
        return None
    if "AttributeError" not in crash(run).classes or library_frames(crash(run)):
        return None
    if first.text.endswith(".grad"):
        owner = first.text.removesuffix(".grad")
        made = [a for a in makers(run, owner) if a.text]
        because = f"{owner} has no gradient yet: no backward pass has reached it"
        fix = f"Keep {owner} one tensor (change it under torch.no_grad()), and call backward first."
        over = [a for a in made if a.how == "loop" and "parameters" in a.calls]
        if over and run.of_kind("backward"):
            because = (
                f"backward has run and not reached {owner}: a layer of {over[0].text} that forward "
                "does not use has no gradient"
            )
            fix = (
                f"Leave those out: if {owner}.grad is not None; "
                "torch.nn.utils.clip_grad_norm_ does so itself."
            )
    else:
        made = [a for a in makers(run, first.text) if a.text]
        because = (
            f"{first.text} comes from {made[0].text} (line {made[0].site.line})" if made else ""
        )
        fix = f"Return the value from the function that makes {first.text}."
    return explained(
        run,
        f"{first.text} is None",
        (*(a.site for a in made[:1]), frame.site),
        Fix(fix),
        expected=f"a value that has {expression.name}",
        got="None",
        because=because,
    )


def _no_such_layer(run: Run, frame: CrashFrame) -> Finding | None:
    """A layer that the model does not have, under a name that is near one that it has."""
    getting = frame_of(crash(run), "__getattr__", "torch.nn.modules.module")
    module = getting.values.get("self") if getting is not None else None
    if module is None or module.kind != "module" or frame.expression is None:
        return None
    wanted = frame.expression.name.rpartition(".")[2]
    held = [str(name) for name in module.settings.get("children") or ()]
    near = get_close_matches(wanted, held, 1)
    if not near:
        return None
    built = module.built.site if module.built is not None else None
    return explained(
        run,
        f"{module.cls} has no {wanted}; it has {near[0]}",
        (frame.site, built),
        Fix(f"Use one name in both places: self.{near[0]}."),
        expected=f"one of {', '.join(held)}",
        got=wanted,
        because=f"the constructor of {module.cls} sets {', '.join(held)}",
    )


def _no_index(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """loader[0], model.parameters()[0]: something that has no elements by number."""
    first = expression.operands[0] if expression.operands else None
    wrong = ("loader", "function", "class", "none", "optimizer")
    if expression.kind != "subscript" or first is None or first.bound is None:
        return None
    if "TypeError" not in crash(run).classes or first.bound.kind not in wrong:
        return None
    fix = f"Take the first with next(iter({first.text})), or go over it in a loop."
    if first.bound.kind in ("function", "class"):
        fix = f"Call it: {first.text}(...)."
    return explained(
        run,
        f"{first.text} is a {first.bound.cls}, which has no elements by number",
        (frame.site, *(a.site for a in makers(run, first.text)[:1])),
        Fix(fix),
        expected="a list, a tuple or a tensor",
        got=f"a {first.bound.cls}",
    )


_MAKING = ("tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "asarray")


def _tensor_of_tensors(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """torch.tensor(rows), where the rows are tensors of a graph: it takes numbers, and would cut the
    graph. Rows without one are samples of a batch: pipeline.ragged-batch.
    """
    first = expression.operands[0] if expression.operands else None
    if expression.name not in _MAKING or first is None or first.bound is None:
        return None
    items = [item for item in first.bound.items if item.kind == "tensor"]
    wide = [item for item in items if prod(item.shape) != 1]
    if first.bound.kind != "sequence" or not wide or not any(i.requires_grad for i in items):
        return None
    if "ValueError" not in crash(run).classes:
        return None
    even = len({item.shape for item in items}) == 1
    way = f"torch.stack({first.text})" if even else f"torch.cat({first.text})"
    kept = [a for f, n in _frames_of(run, frame, first) for a in f.assignments if a.name == n]
    added = [a.site for a in kept if a.how == "append"] or [a.site for a in makers(run, first.text)]
    old = expression.text
    called = old.partition("(")[0]
    return explained(
        run,
        f"{called} is given {first.text}, a {first.bound.cls} of tensors",
        (frame.site, *added[-1:]),
        Fix(
            f"Put them together with {way}, which keeps their graph.",
            replace=(old, way) if even and old in frame.site.code else None,
        ),
        expected="numbers",
        got=f"{first.bound.length} tensors of {written(wide[0].shape)}",
        because=f"{called} copies numbers out of what it is given",
        sizes=[Size(f"{first.text}[0]", written(wide[0].shape), wide[0].node)],
    )


def _not_a_tensor(run: Run) -> Finding | None:
    """A layer or function of torch that is given an array, a module or a number."""
    call = refusal(run)
    if call is None or "TypeError" not in crash(run).classes:
        return None
    first: Given | None = call.given[0] if call.given else None
    if first is None or first.bound.kind not in ("array", "module", "number", "none"):
        return None
    if call.module is None and not library_frames(crash(run)):
        return None
    made = [a for a in makers(run, first.name) if a.text]
    root = made[0] if made else None
    kind = first.bound.kind
    fix = f"Give it a tensor: torch.from_numpy({first.name}).float()."
    if kind == "module":
        called = root.text.partition("(")[0] if root is not None else first.bound.cls
        fix = f"{called}(...) only makes the module: call it as {called}()({first.name})."
    elif kind == "none":
        fix = f"{first.name} is None: return the value from the function that makes it."
    elif kind == "number":
        fix = f"Give it a tensor: torch.tensor({first.name})."
    return explained(
        run,
        f"{call.layer} is given a {first.bound.cls} where it takes a tensor",
        (root.site if root is not None else None, call.frame.site),
        Fix(fix),
        expected="a tensor",
        got=f"a {first.bound.cls} ({first.name})",
        because=f"{first.name} comes from {root.text} (line {root.site.line})" if root else "",
        sizes=[Size(first.name, written(first.bound.shape), first.bound.dtype)],
    )


def _not_callable(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """x.shape(0): an attribute that is called."""
    called = expression.called
    kinds = ("sequence", "tensor", "number", "text", "none")
    if "TypeError" not in crash(run).classes or called is None or called.kind not in kinds:
        return None
    name, _, inside = expression.text.partition("(")
    if called.kind == "tensor" or inside == ")":
        return _called_twice(run, frame, name, called.cls)
    if any(a.name == name for a in frame.assignments):
        return None  # a name that the script gave this value itself
    return explained(
        run,
        f"{name} is a {called.cls}, which cannot be called",
        (frame.site,),
        Fix(f"Use square brackets for an element: {name}[{inside.rstrip(')')}]."),
        expected="a function",
        got=f"a {called.cls}",
    )


def _result_called(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """f(a)(b): what the first call gives is called as well, and is a value."""
    died = crash(run)
    said = _NOT_CALLABLE.fullmatch(died.message)
    if "TypeError" not in died.classes or said is None or library_frames(died):
        return None
    try:
        node = ast.parse(expression.text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Call, ast.Attribute)):
        return None
    if expression.called is not None and expression.called.kind in _VALUES:
        return None  # an attribute whose value is known
    return _called_twice(run, frame, ast.unparse(node.func), said[1])


def _called_twice(run: Run, frame: CrashFrame, name: str, cls: str) -> Finding | None:
    if any(a.name == name for a in frame.assignments):
        return None  # a name that the script gave this value itself
    return explained(
        run,
        f"{name} is a {cls}, which cannot be called",
        (frame.site,),
        Fix(f"Leave the brackets behind it out: {name} is the value already."),
        expected="a function",
        got=f"a {cls} ({name})",
        because=f"the brackets behind {name} call what it gives",
    )


def _arguments(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """A function that does not take what it is given: number, names or types of the arguments."""
    died = crash(run)
    below = library_frames(died)
    if "TypeError" not in died.classes or expression.kind != "call":
        return None
    if below and not below[-1].home.startswith("torch"):
        return None
    called = expression.called
    if called is not None and called.kind in _VALUES:
        return None
    layer = refusal(run)
    if layer is not None and layer.module is not None and layer.given:
        return None  # what a layer was given is named by the faults of shapes, dtypes and unpacking
    name = expression.text.partition("(")[0]
    known = called is not None and called.kind in ("function", "class", "module")
    if not known and expression.operands and expression.operands[0].bound is None:
        return None
    given = ", ".join(
        f"{o.keyword}={_kind(o.bound)}" if o.keyword else _kind(o.bound)
        for o in expression.operands
    )
    said = died.message.split("\n")[0][:200]
    broken = broken_sizes(below)
    forward = called.lines.get("forward") if called is not None else None
    return explained(
        run,
        f"{name} does not take the arguments that it is given",
        (frame.site, forward),
        Fix(
            f"Make {broken[0]} a whole number: n // 2 in place of n / 2."
            if broken
            else f"Give {name} what it takes: {said}"
        ),
        expected=said,
        got=f"({given})",
        because=f"{', '.join(broken)} is a float, and sizes are whole numbers" if broken else "",
        sizes=_rows(expression),
        at_most="likely",
    )


_REFUSALS = ("TypeError", "ValueError", "RuntimeError")  # of built-in exceptions
_TRAINERS = ("lightning", "pytorch_lightning", "transformers", "accelerate")


def _settings(run: Run, frame: CrashFrame, expression: Expression) -> Finding | None:
    """A training library that checks what it is given says no: its own words are what is known."""
    died = crash(run)
    below = library_frames(died)
    if not below or expression.kind != "call":
        return None
    first = died.classes[0] if died.classes else ""
    # A raise of the library's is a refusal; a KeyError out of its own dictionaries is none.
    raised = below[-1].site.code.startswith("raise ")
    checked = any(name in died.classes for name in _REFUSALS) or not hasattr(builtins, first)
    checked = checked or raised
    home, last = below[-1].home, below[-1].site.function
    data = home.startswith("torch.utils.data") and last == "__init__"
    if not checked or not (data or home.partition(".")[0] in _TRAINERS):
        return None  # what torch itself refuses has faults of its own
    name = expression.text.partition("(")[0]
    said = " ".join(died.message.split())[:200]
    given = ", ".join(o.keyword or o.text for o in expression.operands)
    given_as = [o.text for o in expression.operands]
    single = axis_of_one(run, expression)
    origins = [a for text in (name.partition(".")[0], *given_as) for a in makers(run, text)]
    made = list(dict.fromkeys(a.site for a in origins))
    named = spoken_of(died.message, origins, expression)
    because = f"{single[0]}: each sample has an axis of its own, and the loader adds the batch's"
    return explained(
        run,
        f"{name} refuses how it is used",
        (*(single[1] if single[0] else named), *samples_returned(run, below), frame.site, *made),
        Fix(
            "Take the axis of size 1 off where the sample is made: value.squeeze(0) in __getitem__."
            if single[0]
            else f"Give {name} what it asks for: {said}"
        ),
        expected=said,
        got=f"{name}({given})",
        because=because if single[0] else "",
        at_most="likely" if raised else "suspected",
    )


def _kind(bound: Bound | None) -> str:
    return bound.cls if bound is not None else "a value"
