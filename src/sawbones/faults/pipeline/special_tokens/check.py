"""PAD, EOS or another marker with the id of a real token, or masked away together with the padding

## What it sees
Token rows and targets of up to 60 batches. Three readings of them. The padding id stands inside of texts,
and it is the id that the loss ignores or the embedding zeroes: a real token shares it. Or rows of
different lengths are all followed by the padding id, even the longest of every batch, and no target
that counts is ever that id nor any other terminator: EOS is PAD and was masked with it. Or texts
that all begin with one id (BOS) and are padded end in anything: there is no EOS at all.
Two more need one deep step: the labels of a CTC loss, within their lengths, hold the id of its
blank, which must stand for no label; and a loss that leaves out the padding id by number, single
targets inside of the texts that it is to go on with among them.

## Why it matters
A token that the loss ignores is never learned; a model whose EOS never counts never learns to stop.

## Looks like
Generation runs on until the limit, or never writes one particular letter; the loss looks fine.

## Example
    labels[input_ids == tokenizer.pad_token_id] = -100  # pad_token is eos_token

## Use instead
    labels[attention_mask == 0] = -100

## Confirm it
Nothing is left to confirm: ids, ends and the targets that count are in the record.

## False alarms
EOS that doubles as PAD while the real EOS counts has a terminator among its targets. Masked
language models ignore most positions, not a few inside of the text, and their inputs hold no PAD.
BOS with the id of PAD stands first only, and the first place is not counted. Sequences of one
length have no padding.

Labels that are padded with the blank behind their length are not counted.

## References
PAD set to EOS and then masked by id is the standard trap in fine-tuning GPT-2 and Llama; letters
numbered from 0 with PAD = 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sawbones.evidence import NothingToJudge, compared, context, exact, finding
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import Evidence, Finding, Fix, LossCall, Run
from sawbones.schema.samples import Samples, SharedId, TokenRows, TokenTargets
from sawbones.trace.feeding import inside_collate, loader_sites
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import data_lines, marked_lines

NEEDS = ("deep", "samples")
USES = ("source_lines", "loaders")
EXPLAINS = (
    "loss.pad-not-ignored",
    "pipeline.mask-mismatch",
    "pipeline.padding-side",
    "data.degenerate-samples",
)
EXPERIMENT = None
MIN_BATCHES = 8  # so that the rows stand for those of the data
MIN_ROWS = 50  # of which the ends or beginnings are counted
MIN_KINDS = 3  # numbers of the id at row ends; two where rows are terminated besides


def check(run: Run) -> Iterator[Finding]:
    aligned = [call for deep in run.deep for call in deep.losses if call.facts.aligned is not None]
    yield from _blank_is_a_label(aligned)
    if found := list(_left_out(run)):
        yield from found
        return
    rows = (run.samples or Samples()).rows
    if aligned and (rows is None or rows.batches < MIN_BATCHES):
        return
    if rows is None or rows.batches < MIN_BATCHES:
        raise NothingToJudge(f"no token rows of {MIN_BATCHES} batches")
    targets, shared = rows.targets or TokenTargets(), rows.shared
    if rows.pad_id is not None:
        found = list(_collides(run, rows, rows.pad_id, targets))
        yield from found or _without_end(run, rows, rows.pad_id, targets)
    elif shared is None:
        raise NothingToJudge("no id fills the ends of rows")
    elif _fills_ends(shared, targets):
        common = replace(rows, interior_share=shared.interior_share)
        yield from _collides(run, common, shared.id, targets)


def _blank_is_a_label(calls: list[LossCall]) -> Iterator[Finding]:
    """The default of torch, 0, where real labels are numbered from 0."""
    for call in calls:
        seen = call.facts.aligned
        if seen is None or not seen.blanks:
            continue
        yield finding(
            f"The blank of the CTC loss is id {seen.blank}, which is a label as well",
            locate(call.facts.built_at, call.site),
            (
                exact(
                    f"{seen.blanks} of {seen.labels} labels are id {seen.blank}, the blank",
                    seen.blanks,
                    signal="deep",
                ),
            ),
            Fix(
                "Give the loss the id that decoding takes for the blank (blank=...), used by no label."
            ),
        )
        return


def _fills_ends(shared: SharedId, targets: TokenTargets) -> bool:
    """An id too common inside of texts to be taken for padding, but it fills many ends: after a
    terminator, or to any length.
    """
    if not limits.FILLED_ENDS.reached_by(shared.long):
        return False
    last = targets.last_at_limit
    terminated = last.all >= MIN_ROWS and limits.TERMINATED.passed_by(last.commonest)
    return shared.kinds >= MIN_KINDS - terminated and limits.TARGETS_COPIED.passed_by(
        targets.copies
    )


def _collides(run: Run, rows: TokenRows, pad: int, targets: TokenTargets) -> Iterator[Finding]:
    inside, holes = rows.interior_share, targets.holes
    zeroed = any(t.padding_idx == pad and t.role == "tokens" for d in run.deep for t in d.tokens)
    ignored = targets.ignored == pad
    if not limits.INSIDE_TEXTS.reached_by(inside) or not (zeroed or ignored):
        return
    if not ignored:
        harm = context("the embedding keeps it at zero", signal="samples", value=holes, expected=0)
    elif limits.INSIDE_TEXTS.reached_by(holes) and limits.HOLES_IN_TEXTS.kept_by(holes):
        text = f"the loss ignores it at {holes:.1%} of the places inside of texts"
        harm = exact(text, holes, signal="samples")
    else:
        return
    reading = compared(
        f"id {pad} fills the ends of rows and also stands at {inside:.1%} of the places inside of "
        "texts",
        inside,
        limits.INSIDE_TEXTS,
        expected=0,
        signal="samples",
    )
    yield _shared(run, pad, (reading, harm))


def _left_out(run: Run) -> Iterator[Finding]:
    """The text that the model is given, one ahead, holds the id that its own loss leaves out."""
    seen = [
        (deep, call.facts.ignore_index, share)
        for deep in run.deep
        for call in deep.losses
        if call.facts.main and (share := call.facts.left_out_inside) is not None
    ]
    if not seen or not limits.INSIDE_TEXTS.reached_by(min(share for *_, share in seen)):
        return
    _, pad, share = seen[0]
    assert pad is not None
    # An id that neither fills rows nor is kept at zero may be left out for another reason.
    padding = any(pad in (t.padding_idx, t.pad_id) for d in run.deep for t in d.tokens)
    reading = exact(
        f"the loss leaves out id {pad} as padding, and {share:.1%} of the targets inside of "
        "texts are that id: the model is given it there as a real token",
        share,
        expected=0,
        signal="deep",
        steps=[d.step for d, *_ in seen[:5]],
    )
    yield _shared(run, pad, (reading,), "proven" if padding else "suspected")


def _shared(run: Run, pad: int, readings: tuple[Evidence, ...], at_most: str = "proven") -> Finding:
    vocabulary = data_lines(run, "vocabulary")
    return finding(
        f"Padding and a real token share the id {pad}",
        locate(*vocabulary[:2], *marked_lines(run, "assign", pad)[:1], *loader_sites(run))[:4],
        readings,
        Fix(
            "Number real tokens after the special ones, so that the padding id belongs to "
            "nothing else."
        ),
        at_most=at_most,
    )


def _without_end(run: Run, rows: TokenRows, pad: int, targets: TokenTargets) -> Iterator[Finding]:
    """A language model, padded on the right, for which the padding id never counts, and whose last
    targets are spread over many ids.
    """
    if (
        not limits.TARGETS_COPIED.passed_by(targets.copied)
        or rows.pad_side != "right"
        or pad in targets.counted
    ):
        return
    last = targets.last_below
    if last.all < MIN_ROWS:
        return
    masked = _followed_by_padding(rows, pad, targets)
    if masked and limits.MASKED_ENDS_ALIKE.kept_by(last.commonest):
        yield _masked_end(run, pad, len(last.top), last.commonest)
    elif limits.OPEN_ENDS_ALIKE.kept_by(last.commonest) and _has_beginning(rows):
        yield _no_end(run, len(last.top), last.commonest)


def _followed_by_padding(rows: TokenRows, pad: int, targets: TokenTargets) -> bool:
    """Even the longest row of a batch, or its targets, where the last input was cut off."""
    widths = rows.widths
    dynamic = len(set(widths)) > 1 or max(widths) == max(rows.lengths) + 1
    in_inputs, in_targets = rows.tight_share == 0, targets.tight_share == 0
    return dynamic and in_targets and (in_inputs or targets.ignored == pad)


def _masked_end(run: Run, pad: int, num_ids: int, commonest: float) -> Finding:
    lines = data_lines(run, "compare")
    # what a library's tokenizer is told to pad with
    told = marked_lines(run, "assign", names=("pad_token", "pad_token_id"))
    return finding(
        f"The end of a text has the id of padding ({pad}) and is masked away with it",
        locate(
            *inside_collate(run, lines, reach=25)[:1],
            *told[:1],
            *lines[:1],
            *loader_sites(run)[::-1],
        )[:4],
        (
            context(
                f"every row, the longest of each batch too, is followed by id {pad}, the padding; "
                "none of these ends counts in the loss",
                signal="samples",
                value=0,
                expected=1,
            ),
            compared(
                f"the last target that counts is one of {num_ids} and more different ids, never a "
                "terminator",
                commonest,
                limits.MASKED_ENDS_ALIKE,
                below=True,
                expected=1,
                signal="samples",
            ),
        ),
        Fix(
            "Mask targets by length or attention mask instead of by id, so that the first "
            "EOS counts; or give PAD its own id."
        ),
    )


def _no_end(run: Run, num_ids: int, commonest: float) -> Finding:
    """Texts of different lengths, padding ignored, and nothing that marks their end among the
    targets.
    """
    text = (
        f"the last target that counts is one of {num_ids} and more different ids: none is a "
        "terminator"
    )
    pads = data_lines(run, "pad")
    reading = compared(
        text, commonest, limits.OPEN_ENDS_ALIKE, below=True, expected=1, signal="samples"
    )
    return finding(
        "No text ends: there is no EOS among the targets",
        locate(*pads[:2], *loader_sites(run)[::-1])[:4],
        (reading,),
        Fix("Append an EOS to every text before padding, so that it is a target that counts."),
    )


def _has_beginning(rows: TokenRows) -> bool:
    """All rows begin with one and the same id: texts as wholes, not pieces of a stream."""
    return rows.starts.all >= MIN_ROWS and limits.BEGIN_ALIKE.reached_by(rows.starts.commonest)
