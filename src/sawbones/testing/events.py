"""What the loop did, in order."""

from __future__ import annotations

from collections.abc import Sequence

from sawbones.schema import Event, Run
from sawbones.testing.catalogue import free_of
from sawbones.testing.wording import broken, steps_taken


def assert_event_order(run: Run, *order: str, optional: Sequence[str] = ()) -> None:
    """Events of these kinds come in this order in every optimizer step, `step` (or `scaler_step`)
    among them.

    A kind may come several times in a row (micro-batches), and a new round begins only after
    `step`. Kinds listed as `optional` may be left out of a round. The kinds are those of the
    recording: zero_grad, scale, backward, unscale, clip, scaler_step, step, scaler_update,
    schedule.
    """
    steps_taken(run)
    if "step" not in order and "scaler_step" not in order:
        raise ValueError(f"the order {order} has no 'step': name what comes before it and after it")
    last = order.index("step" if "step" in order else "scaler_step")
    required = [i for i, kind in enumerate(order) if kind not in optional]
    events = [
        e
        for e in run.events
        if e.kind in order and not (e.kind == "schedule" and e.data.get("initial"))
    ]
    events = [e for e in events if e.phase == "train" or e.kind != "backward"]
    wanted = " -> ".join(order)
    seen = {e.kind for e in events}
    for kind in order:
        if kind not in seen and kind not in optional:
            raise broken(
                f"{kind} never happens in {run.num_steps} steps", f"{wanted} in every step"
            )
    before: Event | None = None
    for event in events:
        if before is not None and not _follows(
            order.index(before.kind), order.index(event.kind), last, required
        ):
            raise broken(
                f"{before.kind} is followed by {event.kind}",
                f"{wanted} in every step",
                event.step,
                event.site,
            )
        before = event
    first = order.index(events[0].kind) if events else 0
    if any(i < first for i in required) and first <= last:
        raise broken(
            f"the run begins with {order[first]}",
            f"{wanted} in every step",
            events[0].step,
            events[0].site,
        )


def _follows(now: int, then: int, last: int, required: Sequence[int]) -> bool:
    """Forward over optional kinds only; or into a new round once the step was taken."""
    if now == then:
        return True
    if then > now:
        return not any(now < i < then for i in required)
    if now < last:
        return False
    # What stands after the step belongs to its round and may be the last of it.
    return not any(i < then or i > now for i in required)


def assert_gradients_cleared(run: Run) -> None:
    """At every step after the first the gradients are fresh: none is left of the step before."""
    free_of(run, "loop.no-zero-grad")
