"""A value that the backward pass needs is changed in place

## What it sees
The record of a crash in backward: a saved value has a later version than the one that was saved; or
a parameter that the script itself changes in place with gradients on. Looks for what changed it: an optimizer that stepped between forward and backward, or a line that
changes a value in place (x += y, x[i] = y, relu_()). Fires on the step of the crash.

## Why it matters
The script ends here; without torch's count of versions the gradient would be wrong.

## Looks like
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace
operation.

## Example
    h = torch.sigmoid(self.a(x))
    h += 1
    return self.b(h)

## Use instead
    h = torch.sigmoid(self.a(x))
    h = h + 1
    return self.b(h)

## Confirm it
Nothing is left to confirm: torch counted the changes.

## False alarms
Changes in place that no saved value suffers from do not raise.

## References
Two networks trained in turn, the first optimizer stepping before the second backward.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Assignment, Change, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import Backward, backward, crash, makers, refusal
from sawbones.stats.loss_calls import as_site

NEEDS = ("crash", "crash_record")
USES = ()
EXPLAINS = ()
EXPERIMENT = None
# The two numbers of the count, and the shape of the value, as torch gives them.
_VERSIONS = re.compile(r"version (\d+); expected version (\d+)")
_SHAPE = re.compile(r"\[torch\.\w+ \[([\d, ]*)\]\]")


def check(run: Run) -> Iterator[Finding]:
    changed = list(_leaf(run))
    if changed:
        yield from changed
        return
    call = backward(run)
    if call is None:
        raise NothingToJudge("no backward pass was refused")
    message = crash(run).message
    counted = _VERSIONS.search(message)
    if counted is None:
        return
    sized = _SHAPE.search(message)
    shape = tuple(int(n) for n in re.findall(r"\d+", sized[1])) if sized else ()
    stepped = _step_between(run, call, shape)
    carried = _carried(run, call, shape) if stepped is None else None
    changes = [] if stepped is not None or carried is not None else _changes(run, call, shape)
    first = stepped or (changes[0].site if changes else None)
    if carried is not None:
        first = carried.site
        because = (
            f"{carried.name} (line {carried.site.line}) carries the graph of the pass before, "
            "whose weights the optimizer has changed since"
        )
        fix = (
            f"Cut it where it is carried over: {carried.name} = {carried.text}.detach() (line "
            f"{carried.site.line}), and leave retain_graph out."
        )
    elif stepped is not None:
        because = f"the optimizer changes the weights at line {stepped.line}, after the forward"
        fix = "Call backward on both losses before either optimizer steps, or compute the second "
        fix += "loss again after the first step."
    elif changes:
        because = f"{changes[0].text} changes {changes[0].target} in place"
        fix = f"Make a new value instead: {_anew(changes[0])} (line {changes[0].site.line})."
    else:
        because, fix = "", "Replace operations in place (+=, [...] =, relu_) by ones that copy."
    now, saved = int(counted[1]), int(counted[2])
    yield explained(
        run,
        f"A value of {written(shape)} that backward needs was changed in place",
        (first, *(c.site for c in changes[1:2]), call.frame.site),
        Fix(fix),
        expected=f"version {saved} of the value, as it was saved in the forward pass",
        got=f"version {now}",
        because=because,
        sizes=[Size("the changed value", written(shape))],
        exactly=(now, saved),
    )


def _leaf(run: Run) -> Iterator[Finding]:
    """A parameter that is changed in place while gradients are on: w -= lr * w.grad."""
    call = refusal(run)
    expression = call.expression if call is not None else None
    if call is None or expression is None or call.module is not None or not expression.operands:
        return
    method = expression.kind == "call" and expression.name.endswith("_")
    first = expression.operands[0]
    if not (method or expression.kind in ("augment", "subscript")) or first.bound is None:
        return
    if (
        not first.bound.requires_grad
        or first.bound.node
        or "RuntimeError" not in crash(run).classes
    ):
        return
    made = [a.site for a in makers(run, first.text) if a.text]
    yield explained(
        run,
        f"{first.text} is a parameter and is changed in place while gradients are on",
        (call.frame.site, *made[:1]),
        Fix(f"Change it outside of the graph: with torch.no_grad(): {expression.text}"),
        expected="no change in place of a leaf that needs a gradient",
        got=f"{expression.text} on {first.text}, a leaf of {written(first.bound.shape)}",
        because="torch would have to differentiate through the update of the parameter itself",
        sizes=[Size(first.text, written(first.bound.shape), first.bound.dtype)],
    )


def _step_between(run: Run, call: Backward, shape: tuple[int, ...]) -> Site | None:
    """An optimizer stepped above the failing line, and a weight has just this shape."""
    weights = {t.shape for t in run.tensors} | {t.shape[::-1] for t in run.tensors}
    steps = [e.site for e in run.of_kind("step") if e.site is not None]
    frame = call.frame.site
    near = [
        s
        for s in steps
        if s.file == frame.file and s.line < frame.line and s.line >= call.frame.loop
    ]
    return near[-1] if near and call.frame.loop and (not weights or shape in weights) else None


def _carried(run: Run, call: Backward, shape: tuple[int, ...]) -> Assignment | None:
    """A value with a graph that a line below backward keeps for the next pass of the loop, in which
    an optimizer has stepped; a weight has just this shape.
    """
    weights = {t.shape for t in run.tensors} | {t.shape[::-1] for t in run.tensors}
    frame = call.frame
    steps = [e.site for e in run.of_kind("step") if e.site is not None]
    later = [s for s in steps if s.file == frame.site.file and s.line > frame.site.line]
    if not frame.loop or not later or (weights and shape not in weights):
        return None
    for made in frame.assignments:
        value = frame.values.get(made.name)
        below = made.loop == frame.loop and made.site.line > frame.site.line
        if below and value is not None and value.kind == "tensor" and value.node:
            return made
    return None


def _changes(run: Run, call: Backward, shape: tuple[int, ...]) -> list[Change]:
    """Lines that change a value in place, best first: one that the trace saw make a value of this
    shape, then those inside of functions, then those near the failing line.
    """
    died = crash(run)
    traced = {
        site
        for op in died.recent
        if (site := as_site(op.get("site"))) is not None
        and any(tuple(o.get("shape") or ()) == shape for o in op.get("outputs") or ())
        and str(op.get("name", "")).endswith(("_", "__setitem__", "__iadd__", "__imul__"))
    }
    seen = {(s.file, s.line) for s in traced}
    values = call.frame.values
    sure = [c for c in died.changes if (c.site.file, c.site.line) in seen]
    if sure:
        return sure
    likely = [c for c in died.changes if not _is_plain(values.get(c.target)) and _within(c, call)]
    here = call.frame.site.file
    return sorted(
        likely, key=lambda c: (c.site.file != here, c.function == "<module>", c.site.line)
    )


def _within(change: Change, call: Backward) -> bool:
    """Not a line that runs after the backward pass, nor one before its loop."""
    frame = call.frame
    if change.function != frame.site.function or change.site.file != frame.site.file:
        return change.function not in ("__init__", "init_weights", "reset_parameters")
    return frame.loop <= change.site.line < frame.site.line or not frame.loop


def _is_plain(bound: object) -> bool:
    """A counter or a list: += on it changes no tensor."""
    return getattr(bound, "kind", "") in ("number", "text", "sequence", "mapping", "array")


def _anew(change: Change) -> str:
    found = re.match(r"(.+?)\s*([-+*/@]|//|\*\*)=\s*(.+)", change.text)
    if found and "==" not in change.text:
        return f"{found[1]} = {found[1]} {found[2]} {found[3]}"
    if "inplace" in change.text:
        return change.text.replace("inplace=True", "inplace=False")
    called = re.match(r"(.+)\.(\w+)_\((.*)\)$", change.text)
    if called:
        return f"{called[1]} = {called[1]}.{called[2]}({called[3]})"
    return f"{change.target} = {change.target}.clone() before {change.text}"
