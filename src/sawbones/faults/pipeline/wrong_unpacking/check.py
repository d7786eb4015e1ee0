"""A loop or a layer that takes something else apart than it is given

## What it sees
The record of a crash: Python refused to unpack a value because it holds another number of things, a
layer was given a tuple, list or dict in place of a tensor, or a tensor's method was asked of one.
Fires on the step of the crash.

## Why it matters
The script ends here.

## Looks like
ValueError: too many values to unpack, TypeError: argument 'input' must be Tensor, not tuple, or
AttributeError: 'list' object has no attribute 'to'.

## Example
    out = lstm(x)
    y = fc(out)

## Use instead
    out, state = lstm(x)
    y = fc(out)

## Confirm it
Nothing is left to confirm: what was given and how many names take it are in the record.

## False alarms
Unpacking inside of a library, and errors that the script raises itself, are not looked at.

## References
Recurrent layers give (output, state); a dataset that was given a third column.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Bound, CrashFrame, Expression, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import (
    Given,
    Refusal,
    crash,
    deliberate,
    inner_frame,
    library_frames,
    makers,
    refusal,
)

NEEDS = ("crash", "crash_record")
EXPLAINS = ("loop.api-misuse", "model.shape-mismatch")
EXPERIMENT = None
_ARRAYS = ("array", "tensor")
_PACKED = ("sequence", "mapping", "text")
# What cuts a state from its graph: done for each of its parts.
_EACH = ("detach", "detach_")
# What is asked of tensors and of nothing that holds them.
_OF_TENSORS = {
    "argmax",
    "backward",
    "cpu",
    "cuda",
    "detach",
    "dim",
    "dtype",
    "device",
    "flatten",
    "float",
    "item",
    "long",
    "mean",
    "numpy",
    "permute",
    "reshape",
    "shape",
    "size",
    "softmax",
    "squeeze",
    "sum",
    "to",
    "transpose",
    "unsqueeze",
    "view",
}


def check(run: Run) -> Iterator[Finding]:
    died = crash(run)
    frame = inner_frame(died)
    if deliberate(died) or frame.expression is None:
        raise NothingToJudge("no value was taken apart where the script ended")
    below = library_frames(died)
    if frame.expression.kind == "unpack" and not below:
        yield _unpacked(run, frame, frame.expression)
    elif frame.expression.kind in ("attribute", "call") and not below:
        yield from _asked(run, frame, frame.expression)
    elif uneven := _uneven(frame.expression, below, died.classes):
        yield _packed(run, frame, uneven, frame.expression.text.partition("(")[0], "an array")
    else:
        call = refusal(run)
        if call is not None and call.module is not None:
            yield from _layer(run, call)


def _uneven(
    expression: Expression, below: list[CrashFrame], classes: tuple[str, ...]
) -> Given | None:
    """A tuple of values of different sizes that NumPy was to make one array of."""
    numpy = bool(below) and all(f.home.split(".")[0] == "numpy" for f in below)
    if not numpy or "ValueError" not in classes:
        return None
    for operand in expression.operands:
        bound = operand.bound
        if bound is not None and bound.kind == "sequence" and bound.cls == "tuple":
            forms = {(item.kind, item.shape, item.length) for item in bound.items}
            if len(forms) > 1 and any(item.kind in _ARRAYS for item in bound.items):
                return Given(operand.text, bound)
    return None


def _unpacked(run: Run, frame: CrashFrame, expression: Expression) -> Finding:
    died = crash(run)
    operand = expression.operands[0] if expression.operands else None
    given = operand.bound if operand is not None else None
    if expression.text.startswith("for ") and (given is None or given.kind == "loader"):
        given = died.batch
    elif expression.text.startswith("for ") and given is not None:
        given = given.items[0] if given.items else None
    name = operand.text if operand is not None else "the value"
    count = _count(given)
    got = f"{count} things ({_listed(given)})" if given is not None and count != -1 else ""
    loader = [a for a in makers(run, name.partition("(")[0]) if a.text]
    ends = _ends(frame, name, given)
    because = f"{name} gives {_listed(given)}" if given is not None else ""
    if ends:
        because = f"its last line, {ends[0].line}, returns nothing: {ends[0].code}"
    elif loader:
        because += f"; it is made at line {loader[0].site.line}: {loader[0].text}"
    names = expression.text.removeprefix("for ").partition(" in ")[0].partition(" = ")[0]
    return explained(
        run,
        f"{expression.wanted} names take apart what holds {count}"
        if count != -1
        else f"{name} does not hold the {expression.wanted} things that are taken from it",
        (*ends, frame.site, *(a.site for a in loader[:1])),
        Fix(
            f"Take as many as there are: {_as_many(names, count)}"
            if count != -1
            else f"Return {names} on every way through {name.partition('(')[0]}."
            if ends
            else f"Print one element of {name} and name each of its parts."
        ),
        expected=f"{expression.wanted} things ({names})",
        got=got or "another number",
        because=because,
        sizes=_rows(given),
        exactly=(count, expression.wanted) if count not in (-1, expression.wanted) else None,
    )


def _ends(frame: CrashFrame, text: str, given: Bound | None) -> list[Site]:
    """Where the function ends that returned nothing."""
    called = frame.values.get(text.partition("(")[0])
    if called is None or "(" not in text or (given is not None and given.kind != "none"):
        return []
    name = "forward" if called.kind == "module" else called.cls
    line = called.lines.get(f"end of {name}")
    nothing = "return" not in line.code if line is not None else False
    return [line] if line is not None and nothing else []


def _as_many(names: str, count: int) -> str:
    known = [n.strip() for n in names.strip("()").split(",") if n.strip()]
    more = [*known, *(f"extra{i}" for i in range(1, 8))][:count]
    return f"{', '.join(more)} in place of {names}."


def _count(given: Bound | None) -> int:
    if given is None:
        return -1
    if given.kind == "tensor":
        return given.shape[0] if given.shape else -1
    return given.length


def _listed(given: Bound | None) -> str:
    if given is None:
        return "another number of things"
    if given.kind == "tensor":
        return f"a tensor of {written(given.shape)}"
    if given.kind == "mapping":
        return f"a dict with the keys {', '.join(given.keys[:6])}"
    parts = ", ".join(_one(item) for item in given.items[:6])
    return f"a {given.cls} of {parts}" if parts else f"a {given.cls}"


def _one(item: Bound) -> str:
    return f"{item.cls} {written(item.shape)}" if item.kind == "tensor" else item.cls


def _rows(given: Bound | None) -> list[Size]:
    items = given.items if given is not None else ()
    keys = given.keys if given is not None and given.kind == "mapping" else ()
    names = [keys[i] if i < len(keys) else str(i) for i in range(len(items))]
    return [Size(n, _one(b)) for n, b in zip(names, items, strict=True)][:6]


def _layer(run: Run, call: Refusal) -> Iterator[Finding]:
    packed = [g for g in call.given if g.bound.kind in _PACKED and g.name != "self"]
    first = call.given[0] if call.given else None
    if first is not None and first in packed and call.handed_on:
        yield _handed(run, call, first)
    elif first is not None and first in packed:
        yield _packed(run, call.frame, first, call.layer)


def _handed(run: Run, call: Refusal, given: Given) -> Finding:
    """nn.Sequential hands on whatever a layer returns, a tuple as well."""
    module = call.module
    built = module.built.site if module is not None and module.built is not None else None
    return explained(
        run,
        f"{call.layer} is handed a {given.bound.cls} where it takes a tensor",
        (built, call.frame.site),
        Fix(
            "Call the layer in front of it by itself and hand its first result on (out, _ = "
            "layer(x)): nn.Sequential hands on all that a layer returns."
        ),
        expected="a tensor",
        got=_listed(given.bound),
        because=f"the layer in front of {call.layer} in the nn.Sequential returns a "
        f"{given.bound.cls}",
        sizes=_rows(given.bound),
    )


def _asked(run: Run, frame: CrashFrame, expression: Expression) -> Iterator[Finding]:
    first = expression.operands[0] if expression.operands else None
    known = first is not None and first.bound is not None and first.bound.kind in _PACKED
    method = f".{expression.name}" in expression.text  # not float(x)
    if not known or first is None or first.bound is None or not method:
        return
    if expression.name in _EACH and first.bound.kind == "sequence":
        yield _each(run, frame, Given(first.text, first.bound), expression.name)
    elif expression.name in _OF_TENSORS:
        yield _packed(run, frame, Given(first.text, first.bound), f".{expression.name}")


def _each(run: Run, frame: CrashFrame, given: Given, method: str) -> Finding:
    """hidden.detach() of an LSTM's state: each of its tensors is meant."""
    made = [a for a in makers(run, given.name) if a.text]
    root = made[0] if made else None
    form = "tuple" if given.bound.cls == "tuple" else "list"
    return explained(
        run,
        f"{given.name} is a {given.bound.cls} of {given.bound.length} tensors, which has no "
        f".{method}",
        (frame.site, root.site if root is not None else None),
        Fix(f"Do it for each: {given.name} = {form}(part.{method}() for part in {given.name})."),
        expected="a tensor",
        got=_listed(given.bound),
        because=f"{given.name} comes from {root.text} (line {root.site.line})" if root else "",
        sizes=_rows(given.bound),
    )


def _keys_of_batch(run: Run) -> tuple[str, ...]:
    batch = crash(run).batch
    return batch.keys[:6] if batch is not None and batch.kind == "mapping" else ()


def _packed(
    run: Run, frame: CrashFrame, given: Given, what: str, taken: str = "a tensor"
) -> Finding:
    made = [a for a in makers(run, given.name) if a.text]
    root = made[0] if made else None
    inside = [item for item in given.bound.items if item.kind == "tensor"]
    first = f"{given.name}[0]"
    if given.bound.kind == "mapping":
        first = f"{given.name}[{given.bound.keys[0]!r}]" if given.bound.keys else first
    advice = f"Take the tensor out of it: {first}"
    keys = _keys_of_batch(run) if given.bound.kind == "text" else ()
    if keys:
        advice = f"Take the values by their keys: for batch in loader, then batch[{keys[0]!r}]"
    if root is not None and given.bound.kind == "sequence" and root.how == "assign":
        rest = ", ".join(f"_{i}" for i in range(1, given.bound.length))
        advice += f", or {given.name}, {rest} = {root.text} at line {root.site.line}"
    because = f"{given.name} comes from {root.text} (line {root.site.line})" if root else ""
    if keys:
        because = f"the loader gives a dict ({', '.join(keys)}): taken apart, it gives its keys"
    return explained(
        run,
        f"{given.name} is a {given.bound.cls} where {what} takes {taken}",
        (root.site if root is not None else None, frame.site),
        Fix(f"{advice}."),
        expected=taken,
        got=_listed(given.bound),
        because=because,
        sizes=_rows(given.bound) if inside else [],
    )
