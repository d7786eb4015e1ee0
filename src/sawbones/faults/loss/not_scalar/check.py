"""A backward pass that starts from a value that is no single number, or has no graph

## What it sees
The record of a crash in backward: the value that it starts from has more than one element and no
gradient is given, or it is a leaf that needs no gradient, or a plain number. Fires on the step of
the crash.

## Why it matters
The script ends here.

## Looks like
RuntimeError: grad can be implicitly created only for scalar outputs, or element 0 of tensors does
not require grad and does not have a grad_fn.

## Example
    loss = nn.CrossEntropyLoss(reduction="none")(scores, labels)
    loss.backward()

## Use instead
    loss = nn.CrossEntropyLoss()(scores, labels)
    loss.backward()

## Confirm it
Nothing is left to confirm: the shape and the graph of the value are in the record.

## False alarms
backward(gradient) on a tensor of any shape does not raise.

## References
A loss kept per sample in order to weight it, and never averaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Assignment, Bound, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_origins import maker, sites, trace_of
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import Backward, backward, crash, makers

NEEDS = ("crash", "crash_record")
EXPLAINS = ()
EXPERIMENT = None
_CUTTING = {
    "item",
    "detach",
    "numpy",
    "tolist",
    "tensor",
    "as_tensor",
    "argmax",
    "float",
    "Tensor",
    "FloatTensor",
    "round",
    "sign",
    "Variable",
    "from_numpy",
}
# Steps and choices are flat everywhere, and float() makes no graph out of what they give.
_NO_SLOPE = {"argmax", "round", "sign", "float"}


def check(run: Run) -> Iterator[Finding]:
    call = backward(run)
    if call is None:
        raise NothingToJudge("no backward pass was refused")
    if call.bound.kind == "number" or not (call.bound.requires_grad or call.bound.node):
        yield _without_graph(run, call)
    elif call.bound.kind == "tensor" and prod(call.bound.shape) != 1 and not call.gradient:
        yield _many(run, call)


def _many(run: Run, call: Backward) -> Finding:
    shape = call.bound.shape
    lines = makers(run, call.name)
    built = _criterion(call)
    made = lines[0] if lines else None
    reduced = built is not None and built.settings.get("reduction") == "none"
    at = built.built.site if reduced and built is not None and built.built is not None else None
    because = ""
    if reduced and built is not None:
        because = f"{built.cls} is built with reduction='none': one value per sample"
    elif made is not None:
        because = f"{call.name} comes from {made.text} (line {made.site.line})"
    # what the user's own function returns; the line of the loss only calls it
    returned = maker(trace_of(run, call.name))
    inside = returned is not None and returned.site.function != call.frame.site.function
    where: tuple[Site | None, ...] = (
        *(sites(returned) if inside else ()),
        at,
        made.site if made is not None else None,
        call.frame.site,
    )
    return explained(
        run,
        f"backward starts from {call.name}, which holds {prod(shape)} values",
        where,
        Fix(f"Make it one number before backward: {call.name}.mean().backward()."),
        expected="a single number",
        got=f"{prod(shape)} values in {call.name}",
        because=because,
        sizes=[Size(call.name, written(shape), call.bound.node)],
        exactly=(prod(shape), 1),
    )


def _criterion(call: Backward) -> Bound | None:
    """A loss module of the frame that the value was made with."""
    names = {r for a in call.frame.assignments if a.name == call.name for r in (*a.calls, *a.reads)}
    for name, bound in call.frame.values.items():
        if name in names and bound.home.startswith("torch.nn.modules.loss"):
            return bound
    return None


def _cut(run: Run, lines: Sequence[Assignment]) -> Assignment | None:
    """The line whose value has no graph while what it is made of has one: a tensor of the graph, or
    a module with parameters. Of a name that gets several values only the last is known.
    """
    frames = {f.site.function: f for f in crash(run).frames if f.user}
    seen: set[tuple[str, str]] = set()
    for made in lines:
        frame = frames.get(made.site.function)
        key = (made.site.function, made.name)
        value = frame.values.get(made.name) if frame is not None and key not in seen else None
        seen.add(key)
        if frame is None or value is None or made.how != "assign" or _has_graph(value):
            continue
        known = frame.values
        read = [known[n] for n in made.reads if n in known and known[n].kind == "tensor"]
        called = [known[n] for n in made.calls if n in known and known[n].kind == "module"]
        if any(map(_has_graph, [*read, *(called if made.name not in made.reads else ())])):
            return made
    return next((a for a in lines if set(a.calls) & _CUTTING), None)


def _has_graph(bound: Bound) -> bool:
    learned = bound.kind == "module" and bool(bound.settings.get("num_trained"))
    return learned or bound.requires_grad or bool(bound.node)


def _frozen(run: Run, lines: Sequence[Assignment]) -> str:
    """The name of a module behind the value whose parameters are all frozen."""
    frames = {f.site.function: f for f in crash(run).frames if f.user}
    for made in lines:
        frame = frames.get(made.site.function)
        for name in made.calls if frame is not None else ():
            held = frame.values[name].settings if frame and name in frame.values else {}
            if held.get("num_parameters") and not held.get("num_trained"):
                return name
    return ""


def _without_graph(run: Run, call: Backward) -> Finding:
    lines = makers(run, call.name)
    frozen = _frozen(run, lines)
    if frozen and crash(run).frozen:
        return _all_frozen(run, call, frozen, lines)
    cut: Assignment | None = _cut(run, lines)
    made = cut or (lines[0] if lines else None)
    what = "a plain number" if call.bound.kind == "number" else "a value without a graph"
    because = f"{call.name} comes from {made.text} (line {made.site.line})" if made else ""
    fix = "Compute the loss from the model's output with gradients on, and keep it a tensor"
    if cut is not None:
        fix = f"Leave out what takes the value out of the graph in line {cut.site.line}: {cut.text}"
        if not set(cut.calls) & (_CUTTING - _NO_SLOPE):
            fix += "; compute the loss from the scores themselves, with gradients on"
    return explained(
        run,
        f"backward starts from {call.name}, which is {what}",
        (made.site if made is not None else None, call.frame.site),
        Fix(f"{fix}."),
        expected="a tensor that was computed from parameters (it has a grad_fn)",
        got=f"{what} ({call.name}, {call.bound.cls})",
        because=because,
        sizes=[Size(call.name, written(call.bound.shape), call.bound.dtype)],
        exactly=(0, 1),
    )


def _all_frozen(run: Run, call: Backward, name: str, lines: Sequence[Assignment]) -> Finding:
    freezing = crash(run).frozen
    return explained(
        run,
        f"backward starts from {call.name}, and every parameter of {name} is frozen",
        (freezing[-1], *(a.site for a in lines[:1]), call.frame.site),
        Fix(
            f"Freeze before the layers that are to learn are put in, or let theirs learn again "
            f"afterwards: for p in {name}.<layer>.parameters(): p.requires_grad = True."
        ),
        expected="a tensor that was computed from parameters that learn (it has a grad_fn)",
        got=f"a value without a graph ({call.name}, {call.bound.cls})",
        because=f"line {freezing[-1].line} takes all of them out: {freezing[-1].code}",
        sizes=[Size(call.name, written(call.bound.shape), call.bound.dtype)],
        exactly=(0, 1),
    )
