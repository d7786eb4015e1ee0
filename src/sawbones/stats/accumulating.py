"""Steps that several backward passes lead to, and what each pass starts from."""

from __future__ import annotations

import numpy as np

from sawbones.schema import Event, Run, Site
from sawbones.stats.protocol import Turn, same_place, turns
from sawbones.trace.locate import locate

NOT_ACCUMULATED = "gradients are not accumulated over several backward passes"


def accumulating(run: Run) -> list[Turn]:
    """The turns of several passes, nothing where they are not the rule."""
    whole = [t for t in turns(run) if t.backwards and not t.closure and t.taken.kind == "step"]
    several = [t for t in whole if len(t.backwards) > 1]
    accumulates = 2 * len(several) >= len(whole)
    # The sum of gradients may itself have thrown the run: NaN says nothing here.
    several = [t for t in several if _finite(t)]
    return several if accumulates and len(several) > 1 else []


def own_clears(turn: Turn) -> tuple[Event, ...]:
    """zero_grad of the optimizer that steps, or of a whole model."""
    return tuple(
        z for z in turn.of("zero_grad") if z.data.get("optimizer", turn.optimizer) == turn.optimizer
    )


def last_clear(turn: Turn) -> Event | None:
    """The last zero_grad between two backward passes of a step."""
    passes = turn.backwards
    between = [z for z in own_clears(turn) if passes[0].seq < z.seq < passes[-1].seq]
    return between[-1] if between else None


def num_thrown(turn: Turn) -> int:
    """Backward passes whose gradients were cleared before the step could use them."""
    clear = last_clear(turn)
    return 0 if clear is None else sum(b.seq < clear.seq for b in turn.backwards)


def epoch_borders(run: Run) -> set[int]:
    """Steps that batches of two epochs lead to: by the loader's count, or one more whenever a
    sample of this epoch comes again.
    """
    found: dict[int, set[int]] = {}
    seen: set[int] = set()
    number = 0
    for batch in run.batches:
        if batch.phase != "train":
            continue
        if batch.source != "model":
            found.setdefault(batch.step, set()).add(batch.epoch)
            continue
        if not seen.isdisjoint(batch.fingerprints):
            seen, number = set(), number + 1
        seen.update(batch.fingerprints)
        found.setdefault(batch.step, set()).add(number)
    return {step for step, epochs in found.items() if len(epochs) > 1}


def _finite(turn: Turn) -> bool:
    return all(
        np.isfinite(v) for b in turn.backwards if isinstance(v := b.data.get("value"), float)
    )


def root_over_loss(turn: Turn) -> float | None:
    """Root over loss for the passes of one step, None when these are not micro-batches of one
    loss.
    """
    backwards = turn.backwards
    losses = [e for e in turn.of("loss") if e.data.get("grad") and e.phase == "train"]
    if not same_place(backwards) or len(losses) != len(backwards) or not same_place(losses):
        return None
    shapes = {str(e.data.get("input_shape", [0])[1:]) for e in losses}
    if any(e.data.get("reduction") != "mean" for e in losses) or len(shapes) > 1:
        return None
    forwards = [e for e in turn.of("forward") if e.phase == "train"]
    # A model without modules has no forward events at all.
    if forwards and len(forwards) < len(backwards):
        return None
    pairs = [
        (b.data.get("value"), e.data.get("value")) for b, e in zip(backwards, losses, strict=True)
    ]
    known = [(b, v) for b, v in pairs if isinstance(b, float) and isinstance(v, float) and v]
    if len({v for _, v in known}) < 2:
        return None  # the same batch again: a penalty, a second order, an attack
    return float(np.median([b / v for b, v in known]))


def where_divided(turn: Turn) -> tuple[Site, ...]:
    """The backward pass; or the loss, where one line of the user's leads to both the pass and the
    step: a library's loop.
    """
    backward, loss = turn.backwards[-1], next(iter(turn.of("loss")), None)
    one_line = (
        backward.site is not None
        and turn.taken.site is not None
        and backward.site.line == turn.taken.site.line
    )
    return locate(loss, backward) if one_line else locate(backward, loss)
