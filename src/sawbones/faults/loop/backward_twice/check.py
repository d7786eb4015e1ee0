"""A backward pass through a graph that another one has used up

## What it sees
The record of a crash in backward: the graph was freed by an earlier backward pass. Looks for the
value that carries the old graph: a name that is given its value before the loop, or that a pass of
the loop takes over from the one before it. Fires on the step of the crash, mostly the second.

## Why it matters
The script ends here. With retain_graph=True it goes on, and every step becomes slower than the one
before.

## Looks like
RuntimeError: Trying to backward through the graph a second time.

## Example
    for x in batches:
        hidden = cell(x, hidden)
        loss = head(hidden).mean()
        loss.backward()

## Use instead
    for x in batches:
        hidden = cell(x, hidden.detach())
        loss = head(hidden).mean()
        loss.backward()

## Confirm it
Nothing is left to confirm: torch refused the second pass.

## False alarms
Only a refused backward pass is looked at; double backward with create_graph does not raise.

## References
PyTorch's word language model example detaches the hidden state between batches.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.evidence import NothingToJudge, explained
from sawbones.schema import Assignment, CrashFrame, Finding, Fix, Run, Site, Size
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import Backward, backward, crash, origins

NEEDS = ("crash", "crash_record")
EXPLAINS = ()
EXPERIMENT = None
# The option that torch names in this refusal and in no other.
_OPTION = "retain_graph=True"


def check(run: Run) -> Iterator[Finding]:
    call = backward(run)
    if call is None:
        raise NothingToJudge("no backward pass was refused")
    if _OPTION not in crash(run).message:
        return
    carried = _carried(run, call)
    frame = call.frame
    if carried is None:
        yield _plain(run, call)
        return
    before = carried.loop != frame.loop
    how = "made before the loop" if before else "taken over from the pass before"
    fix = (
        f"Compute {carried.name} inside of the loop (line {carried.site.line} stands before it)."
        if before
        else f"Cut its graph between passes: {carried.name} = {carried.name}.detach() at the "
        "start of each."
    )
    bound = frame.values.get(carried.name)
    yield explained(
        run,
        f"{carried.name} carries the graph of an earlier pass into this backward",
        (carried.site, frame.site),
        Fix(fix),
        expected="a graph that no backward pass has used yet",
        got=f"one that reaches back through {carried.name}, which is {how}",
        because=f"{carried.name} = {carried.text}",
        sizes=[Size(carried.name, written(bound.shape), bound.node)] if bound is not None else [],
    )


def _carried(run: Run, call: Backward) -> Assignment | None:
    """The name that holds the old graph: a value of the graph that the loop did not make, or that
    it reads before it makes it.
    """
    frame, known = call.frame, set(crash(run).carriers)
    names = sorted(n for n in known if n != call.name)
    inside = [a for a in frame.assignments if frame.loop and a.site.line >= frame.loop]
    for name in sorted(names, key=lambda n: _last_line(frame, n)):
        own = [a for a in frame.assignments if a.name == name and a.how in ("assign", "augment")]
        in_loop = [a for a in own if a in inside]
        if own and not in_loop and frame.loop:
            return own[-1]
    for made in inside:
        over = made.name in made.reads or made.how == "augment"
        if over and (made.name in known or made.name == call.name):
            return made
    for name in names:
        own = [a for a in inside if a.name == name and a.how == "assign"]
        read = [a for a in inside if name in a.reads]
        if own and read and read[0].site.line < own[0].site.line:
            return own[0]
    return None


def _last_line(frame: CrashFrame, name: str) -> int:
    return max((a.site.line for a in frame.assignments if a.name == name), default=0)


def _shared(run: Run, call: Backward) -> tuple[Assignment, Site] | None:
    """(the value that both losses are computed from, the first backward), where another line of the
    same function has gone backward since the value was made.
    """
    frame, known = call.frame, set(crash(run).carriers)
    here = (frame.site.file, frame.site.function)
    before = [e.site for e in run.of_kind("backward") if e.site is not None]
    first = [s for s in before if (s.file, s.function) == here and s.line < frame.site.line]
    for made in origins(frame, call.name) if first else ():
        if made.name != call.name and made.name in known and made.site.line < first[-1].line:
            return made, first[-1]
    return None


def _two_losses(run: Run, call: Backward, made: Assignment, first: Site) -> Finding:
    name = made.name
    bound = call.frame.values.get(name)
    return explained(
        run,
        f"Two losses go backward through {name}, and the first has freed its graph",
        (made.site, first, call.frame.site),
        Fix(
            f"Give the loss that shall not train what made it {name}.detach(). Where both shall, "
            "add the losses and call backward once."
        ),
        expected="a graph that no backward pass has used yet",
        got=f"that of {name}, which line {first.line} has gone through ({first.code})",
        because=f"{name} = {made.text} (line {made.site.line}) is made once for both losses",
        sizes=[Size(name, written(bound.shape), bound.node)] if bound is not None else [],
    )


def _plain(run: Run, call: Backward) -> Finding:
    """Two backward passes of one graph, without a value that is carried over."""
    shared = _shared(run, call)
    if shared is not None:
        return _two_losses(run, call, *shared)
    return explained(
        run,
        f"backward goes through the graph of {call.name} a second time",
        (call.frame.site,),
        Fix(
            "Add the losses and call backward once; or compute the forward pass again before the "
            "second backward; or give the first one retain_graph=True."
        ),
        expected="a graph that no backward pass has used yet",
        got=f"one that an earlier backward has freed, from {call.name}",
        because="a graph is freed by the backward pass that goes through it",
        sizes=[Size(call.name, written(call.bound.shape), call.bound.node)],
    )
