"""Padded positions that count in the loss

## What it sees
Positions whose input token is padding (the id that fills the ends of rows of different lengths,
found from values) and the gradient of the loss with respect to the scores there. Ignored positions
have a gradient of exactly zero, however they are ignored: ignore_index, a mask, a weight, a
selection. Fires when padded positions carry at least 2 % of the weight of all targets and their
target is one and the same id; from the first deep step on whose batch has rows of different
lengths. Inputs of numbers are padded where all features are zero up to one end of a row; there it
fires when the target is one and the same number, which hardly stands anywhere else.

## Why it matters
The model is paid for predicting padding, which is easy: the loss looks better than it is, depends
on how ragged a batch is, and part of every gradient goes into a task that nobody wants.

## Looks like
Loss falls fast at the start and is lower than the real tokens deserve; generation ends in padding
or stops early.

## Example
    criterion = nn.CrossEntropyLoss()
    loss = criterion(logits.flatten(0, 1), targets.flatten())

## Use instead
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    loss = criterion(logits.flatten(0, 1), targets.flatten())

## Confirm it
The reading is the proof: the gradient that reaches the scores at padded positions was measured and
is not zero.

## False alarms
Where padding and end-of-sequence share an id, the first one is a real target: its input is a word,
not padding, so it is not looked at. Losses that are masked or weighted after reduction="none" have
zero gradient at padding. Labels of -100 are ignored by default. Silence and empty frames of numbers
have the label that silence has elsewhere too, which is at most suspected. A tagger whose padded
positions carry different targets has real labels there. Classifiers of whole texts have no target
per position.

## References
The PyTorch translation tutorial and the Annotated Transformer both take care of it by hand
(ignore_index, padding_idx in the label-smoothing loss); Hugging Face collators pad labels with -100
for this reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sawbones.evidence import Limit, NothingToJudge, compared, context, exact, finding
from sawbones.evidence.limits import loss as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.schema.loss import BlankTargets, PaddedTargets
from sawbones.stats.loss_calls import Seen, carrying, user_sites
from sawbones.trace.feeding import data_sites, framework_sites
from sawbones.trace.locate import locate

NEEDS = ("loss_calls",)
USES = ("loaders",)
EXPLAINS = ("evaluation.metric-padding", "pipeline.padding-waste", "data.class-imbalance")
EXPERIMENT = None

_MAKING = frozenset(
    {
        "pad_sequence",
        "tensor",
        "full",
        "new_full",
        "zeros",
        "new_zeros",
        "full_like",
        "zeros_like",
        "pad",
        "cat",
        "stack",
        "as_tensor",
        "__setitem__",
        "from_numpy",
        "masked_fill",
        "where",
        "LongTensor",
    }
)


_Where = TypeVar("_Where", PaddedTargets, BlankTargets)


def check(run: Run) -> Iterator[Finding]:
    every = carrying(run)
    padded = [(s, p) for s in every if (p := _padding(s)) is not None]
    blank = [(s, b) for s in every if (b := s.facts.blank) and _weighed(s)]
    if not padded and not blank:
        raise NothingToJudge("no loss had a target at padded positions")
    if padded and 3 * len(padded) >= len(every):
        yield from _of_tokens(run, padded)
    elif not padded and 2 * len(blank) >= len(every):
        yield from _of_numbers(blank)


def _of_tokens(run: Run, padded: list[tuple[Seen, PaddedTargets]]) -> Iterator[Finding]:
    heavy = _heavy(padded, limits.PAD_COUNTED)
    if not heavy or 2 * len(heavy) < len(padded):
        return
    first, padding = max(heavy, key=lambda item: item[1].weight_share)
    pad, own = padding.pad_id, padding.same_vocabulary
    what = f"id {pad}" if own else f"label {padding.target} at positions padded with {pad}"
    ignored = first.facts.ignore_index
    yield _finding(
        heavy,
        f"{padding.counted} of {padding.rows} padded positions get a gradient",
        context(
            f"their target is always {what}, and the loss ignores "
            + ("nothing" if ignored is None else f"{ignored} only"),
            signal="loss_calls",
            steps=(first.deep.step,),
            value=padding.target_share,
        ),
        _where(run, [s for s, _ in heavy], own or _of_its_own(first, padding)),
        f"Ignore padded targets: ignore_index={pad}, or a mask that divides by the number of "
        "real targets."
        if own
        else "Pad the labels with the id that the loss ignores (-100), not with a real label.",
    )


def _of_numbers(blank: list[tuple[Seen, BlankTargets]]) -> Iterator[Finding]:
    """Rows of numbers of different lengths, filled up with zeros."""
    heavy = [
        (s, b)
        for s, b in _heavy(blank, limits.BLANKS_COUNTED)
        if limits.BLANK_TARGET.passed_by(b.target_share)
    ]
    if not heavy or not limits.BLANK_STEPS.reached_by(len(heavy) / len(blank)):
        return
    elsewhere = max(b.elsewhere for _, b in heavy)
    if not limits.BLANK_TARGET_ELSEWHERE.suspected_below(elsewhere):
        return
    first, filled = heavy[0]
    yield _finding(
        heavy,
        f"{filled.counted} of {filled.rows} positions at the ends of rows whose input is all "
        "zeros get a gradient",
        compared(
            f"their target is always {filled.target:g}, which {100 * elsewhere:.1f} "
            "% of the other targets are",
            elsewhere,
            limits.BLANK_TARGET_ELSEWHERE,
            below=True,
            signal="loss_calls",
            steps=(first.deep.step,),
        ),
        locate(first.call, first.built),
        "Take the loss over the real positions only: select them by their lengths, or "
        "mask and divide by their number.",
    )


def _heavy(padded: list[tuple[Seen, _Where]], share: Limit) -> list[tuple[Seen, _Where]]:
    """The steps on which padding counts."""
    return [
        (s, p)
        for s, p in padded
        if limits.PAD_WEIGHT.reached_by(p.weight_share) and share.passed_by(p.counted / p.rows)
    ]


def _finding(
    heavy: list[tuple[Seen, _Where]],
    text: str,
    target: Evidence,
    where: tuple[Site, ...],
    fix: str,
) -> Finding:
    shares = [p.weight_share for _, p in heavy]
    share, most = sum(shares) / len(shares), max(shares)
    told = f"{100 * share:.1f} % of the weight of all targets"
    if round(most, 3) != round(share, 3):
        told += f" on average, up to {100 * most:.1f} %"
    return finding(
        f"Padding counts in the loss: {100 * share:.0f} % of its weight lies on padded positions",
        where,
        (
            exact(
                f"{text}; together they carry {told}",
                round(share, 4),
                signal="loss_calls",
                steps=[s.deep.step for s, _ in heavy],
            ),
            target,
        ),
        Fix(fix),
    )


def _weighed(seen: Seen) -> bool:
    return limits.WEIGHTS_FIT.suspected_by(seen.facts.weights.fit if seen.facts.weights else None)


def _padding(seen: Seen) -> PaddedTargets | None:
    """What is known of padded positions, when it is sure that they are padding."""
    padding = seen.facts.padding
    if not padding or not _weighed(seen):
        return None
    number = padding.source
    source = seen.deep.tokens[number] if number < len(seen.deep.tokens) else None
    ragged = source is not None and source.pad_side is not None and len(set(source.lengths)) > 1
    if not ragged or not limits.PAD_TARGET.reached_by(padding.target_share):
        return None
    if padding.same_vocabulary and padding.target != padding.pad_id and padding.counted:
        return None  # real targets at positions whose input happens to be the filling id
    return padding


def _of_its_own(seen: Seen, padding: PaddedTargets) -> bool:
    """The label stands at padding and nowhere else, so it is there to be ignored; a real label
    would have to be kept apart.
    """
    count = seen.facts.target_counts.get(padding.target)
    return count is not None and count - padding.rows <= 0


def _where(run: Run, seen: list[Seen], own_vocabulary: bool) -> tuple[Site, ...]:
    framework = framework_sites(run)
    loss = locate(seen[0].built, seen[0].call)
    shape = tuple(seen[0].facts.sequence_shape or ())
    data = [x for s in seen for x in user_sites(s.deep, _MAKING, s.call.target, s.call.op)]
    data += data_sites(run, shape, _MAKING)
    # Labels that are the ids once more.
    copied = data_sites(run, shape, frozenset({"clone"})) if framework else []
    data = [*(s for s in copied if s.function and s.code and ".clone(" in s.code), *data]
    mine = [site for site in loss if site not in framework]
    made = [site for site in data if site not in framework]
    ordered = mine + made if own_vocabulary and mine else made + mine
    return locate(*ordered, *loss)[:4]
