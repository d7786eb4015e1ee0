"""The last partial accumulation is dropped, or leaks into the next epoch

## What it sees
Backward passes per step when gradients are accumulated, less those that zero_grad clears away
before it. At the end of an epoch a few micro-batches are left over. Leaked: the first step of the next epoch holds them on top of its own, so it has more
backward passes than all the others and batches of two epochs. Dropped: zero_grad throws them away
unused, one epoch border is enough; or they are drawn from the loader and no backward pass comes of
them, the same number in two epochs or more. An epoch ends where its loader does or, without a
loader, where the first sample comes again; where neither is known, steps that are too large by the
same number at regular intervals say it.

## Why it matters
One step per epoch is too large and mixes epochs, or some of the data is never learnt from, the same
share every epoch.

## Looks like
A small jump at every epoch start; fewer steps per epoch than expected.

## Example
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

## Use instead
    for i, (x, y) in enumerate(loader):
        (criterion(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()

## Confirm it
The number of backward passes per step, and the epochs of their batches, are the proof.

## False alarms
Counting micro-batches across epochs gives every step the same number and is no fault. A shorter
last step of an epoch is the right way. A run that ends with micro-batches left over once, at its
very end, is not named, nor is a single short batch per epoch that is drawn and passed over: small
batches are left out on purpose.

## References
Transformers and Accelerate both carried this for years before syncing at the end of the data
loader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import loop as limits
from sawbones.schema import Batch, Finding, Fix, Run, Site
from sawbones.stats.accumulating import epoch_borders, last_clear, num_thrown
from sawbones.stats.protocol import Turn, same_place, turns
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of

NEEDS = ("backward", "steps", "batches")
USES = ("source_calls",)
EXPLAINS = ()
EXPERIMENT = None
MIN_STEPS = 3  # two windows and one that differs from them


def check(run: Run) -> Iterator[Finding]:
    whole = [t for t in turns(run) if t.backwards and not t.closure]
    # What reaches the step: passes that were cleared away before are the remainder itself.
    sizes = Counter(len(t.backwards) - num_thrown(t) for t in whole)
    usual, times = sizes.most_common(1)[0] if sizes else (0, 0)
    if len(whole) < MIN_STEPS or usual < 2 or 2 * times < len(whole):
        raise NothingToJudge("gradients are not accumulated over windows of one length")
    steady = limits.STEADY_WINDOWS.reached_by(times / len(whole))
    unused = _drawn_in_vain(run, usual) if steady and not any(map(num_thrown, whole)) else 0
    if unused:
        yield _never_used(run, whole, usual, unused)
        return
    border = epoch_borders(run)
    in_one_place = [t for t in whole if same_place(t.backwards)]
    borders = [t for t in in_one_place if t.step in border]
    heavy = [t for t in borders if usual < len(t.backwards) < 2 * usual]
    if not heavy or not limits.STEPS_OUT_OF_ORDER.reached_by(len(heavy) / len(borders)):
        heavy = borders = _regular([t for t in in_one_place if len(t.backwards) > usual], usual)
    if not heavy:
        return
    turn = heavy[0]
    extra = len(turn.backwards) - usual
    lost = 2 * len([t for t in heavy if num_thrown(t)]) > len(heavy)
    what = "are thrown away by zero_grad" if lost else "leak into the first step of the next epoch"
    yield finding(
        f"The last {extra} micro-batches of every epoch {what}",
        _end_of_batches(turn),
        (
            exact(
                f"{usual} backward passes per step, but {len(turn.backwards)} at "
                f"{len(heavy)} of {len(borders)} epoch borders",
                len(turn.backwards),
                expected=usual,
                signal="backward",
                steps=[t.step for t in heavy[:5]],
            ),
        ),
        Fix(
            "Step at the last batch of an epoch as well: `if (i + 1) % n == 0 or i + 1 == "
            "len(loader):`."
        ),
    )


def _end_of_batches(turn: Turn) -> tuple[Site, ...]:
    """Where a step may be added: at the step's own condition, or behind the loop over batches,
    where the model is called.
    """
    forward = next(
        (e for e in turn.of("forward") if e.phase == "train" and e.site is not None), None
    )
    places = locate(turn.taken, forward, turn.backwards[-1], last_clear(turn))
    drawn = next((e.site for e in turn.of("batch") if e.site is not None), None)
    if drawn is None:
        return places
    # The step may have a function of its own: what stands in the loop over batches comes first.
    return tuple(sorted(places, key=lambda s: s.function != drawn.function))


def _drawn_in_vain(run: Run, usual: int) -> int:
    """Batches at the end of every epoch that were drawn and not trained on, when windows of `usual`
    leave just as many over.
    """
    by_epoch: dict[tuple[str, int], list[Batch]] = {}
    known = _without_gaps(run.batches)
    drawn = [b for b in known if b.source != "model"]
    for batch in drawn:
        by_epoch.setdefault((batch.source, batch.epoch), []).append(batch)
    trained = Counter(b.source for b in drawn if b.phase == "train")
    if not trained:
        return 0
    source = trained.most_common(1)[0][0]
    mine = [by_epoch[key] for key in sorted(by_epoch) if key[0] == source]
    ends = [epoch[0].step for epoch in mine[1:]]
    finished = run.ending.kind == "finished" and len(known) == len(run.batches)
    ends += [run.num_steps] if finished else []
    left = [
        len(epoch) - usual * (end - epoch[0].step) for epoch, end in zip(mine, ends, strict=False)
    ]
    if len(left) < 2 or len(set(left)) != 1 or not 0 < left[0] < usual:
        return 0
    sizes = [_size(b) for b in mine[0]]
    return 0 if left[0] == 1 and sizes[-1] != max(sizes) else left[0]


def _without_gaps(batches: Sequence[Batch]) -> Sequence[Batch]:
    """Those before the first that was not kept: of long runs only some are."""
    thinned = (i for i, (a, b) in enumerate(pairwise(batches), 1) if b.index > a.index + 1)
    return batches[: next(thinned, len(batches))]


def _size(batch: Batch) -> int:
    shape = next((t["shape"] for t in batch.tensors if t.get("shape")), [0])
    return int(shape[0])


def _never_used(run: Run, whole: list[Turn], usual: int, unused: int) -> Finding:
    drawn = next((e for t in whole for e in t.of("batch")), None)
    return finding(
        f"The last {unused} micro-batches of every epoch are drawn and thrown away: they "
        f"do not fill a window of {usual}",
        (*calls_of(run, ("window",))[:1], *locate(drawn, whole[0].taken)),
        (
            exact(
                f"{usual} backward passes at every step; {unused} more batches are drawn "
                "in every epoch, with no backward",
                unused,
                signal="batches",
            ),
        ),
        Fix(
            "Let the last window be shorter, and divide its loss by its own number of "
            "micro-batches."
        ),
    )


def _regular(large: list[Turn], usual: int) -> list[Turn]:
    """Those steps, when they come at even distances, all too large by the same number."""
    sizes = {len(t.backwards) for t in large}
    apart = {b.step - a.step for a, b in pairwise(large)}
    even = len(large) >= MIN_STEPS and len(sizes) == len(apart) == 1
    return large if even and max(sizes) < 2 * usual and min(apart) >= 2 else []
