"""PAD, EOS or another marker with the id of a real token, or masked away together with the padding

## What it sees
Token rows and targets of up to 60 batches. Three readings. The padding id stands inside of texts,
and it is the id that the loss ignores or the embedding zeroes: a real token shares it. Or rows of
different lengths are all followed by the padding id, even the longest of every batch, and no target
that counts is ever that id nor any other terminator: EOS is PAD and was masked with it. Or texts
that all begin with one id (BOS) and are padded end in anything: there is no EOS at all.

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

## References
PAD set to EOS and then masked by id is the standard trap in fine-tuning GPT-2 and Llama; letters
numbered from 0 with PAD = 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import loader_sites, marked_lines, outside_of_models, sample_rows
from sawbones.stats.loss_calls import places

NEEDS = ("deep",)
EXPLAINS = (
    "loss.pad-not-ignored",
    "pipeline.mask-mismatch",
    "pipeline.padding-side",
    "data.degenerate-samples",
)
EXPERIMENT = None
INSIDE = 0.005


def check(run: Run) -> Iterator[Finding]:
    rows = sample_rows(run)
    if rows is None or rows["batches"] < 8:
        return
    targets = rows.get("targets") or {}
    if rows.get("pad_id") is None and _fills_ends(rows.get("shared") or {}, targets):
        shared = rows["shared"]
        found = _collides(
            run,
            {**rows, "pad_id": shared["id"], "interior_share": shared["interior_share"]},
            targets,
        )
        if found is not None:
            yield found
        return
    if rows.get("pad_id") is None:
        return
    found = (
        _collides(run, rows, targets)
        or _never_ends(run, rows, targets)
        or _no_end(run, rows, targets)
    )
    if found is not None:
        yield found


def _fills_ends(shared: Mapping[str, Any], targets: Mapping[str, Any]) -> bool:
    """An id too common inside of texts to be taken for padding, but it fills many ends: after a
    terminator, or to any length.
    """
    last = dict(targets.get("last_at_limit") or {})
    total = last.pop("all", 0)
    terminated = total >= 50 and max(last.values(), default=0) > 0.95 * total
    long = shared.get("long", 0.0) >= 0.2 and shared["kinds"] >= (2 if terminated else 3)
    return bool(long and targets.get("copies", 0.0) > 0.9)


def _collides(run: Run, rows: Mapping[str, Any], targets: Mapping[str, Any]) -> Finding | None:
    pad, inside = int(rows["pad_id"]), float(rows["interior_share"])
    zeroed = any(t.padding_idx == pad and t.role == "tokens" for d in run.deep for t in d.tokens)
    ignored = targets.get("ignored") == pad
    holes = float(targets.get("holes") or 0.0)
    if inside < INSIDE or not (zeroed or ignored) or (ignored and not INSIDE <= holes <= 0.6):
        return None
    harm = (
        f"the loss ignores it at {holes:.1%} of the places inside of texts"
        if ignored
        else "the embedding keeps it at zero"
    )
    vocabulary = outside_of_models(run, marked_lines(run, "vocabulary"))
    return Finding(
        "pipeline.special-tokens",
        "proven" if ignored else "likely",
        0.96 if ignored else 0.88,
        f"Padding and a real token share the id {pad}",
        places(*vocabulary[:2], *marked_lines(run, "assign", pad)[:1], *loader_sites(run))[:4],
        (
            Evidence(
                (
                    f"id {pad} fills the ends of rows and also stands at {inside:.1%} of the "
                    "places inside of texts"
                ),
                "samples",
                value=inside,
                expected=0.0,
            ),
            Evidence(harm, "samples", value=holes, expected=0.0),
        ),
        Fix(
            "Number real tokens after the special ones, so that the padding id belongs to "
            "nothing else."
        ),
    )


def _never_ends(run: Run, rows: Mapping[str, Any], targets: Mapping[str, Any]) -> Finding | None:
    pad = int(rows["pad_id"])
    predicts = (
        max(float(targets.get("copies") or 0.0), float(targets.get("copies_here") or 0.0)) > 0.9
    )
    if (
        not predicts
        or rows.get("pad_side") != "right"
        or str(pad) in (targets.get("counted") or {})
    ):
        return None
    dynamic = len(set(rows["widths"])) > 1 or max(rows["widths"]) == max(rows["lengths"]) + 1
    followed = rows["tight_share"] == 0.0 and targets.get("tight_share") == 0.0
    cut = (
        targets.get("ignored") == pad and targets.get("tight_share") == 0.0
    )  # the last input was cut off, its target is there
    last = dict(targets["last_below"])
    total = max(last.pop("all", 0), 1)
    if (
        not dynamic
        or not (followed or cut)
        or total < 50
        or max(last.values(), default=0) > 0.8 * total
    ):
        return None
    compared = outside_of_models(run, marked_lines(run, "compare"))
    text = (
        f"every row, the longest of each batch too, is followed by id {pad}, the padding; "
        "none of these ends counts in the loss"
    )
    return Finding(
        "pipeline.special-tokens",
        "likely",
        0.9,
        f"The end of a text has the id of padding ({pad}) and is masked away with it",
        _lines(compared, run),
        (
            Evidence(text, "samples", value=0.0, expected=1.0),
            Evidence(
                (
                    f"the last target that counts is one of {len(last)} and more different "
                    "ids, never a terminator"
                ),
                "samples",
            ),
        ),
        Fix(
            "Mask targets by length or attention mask instead of by id, so that the first "
            "EOS counts; or give PAD its own id."
        ),
    )


def _no_end(run: Run, rows: Mapping[str, Any], targets: Mapping[str, Any]) -> Finding | None:
    """Texts of different lengths, padding ignored, and nothing that marks their end among the
    targets.
    """
    predicts = (
        max(float(targets.get("copies") or 0.0), float(targets.get("copies_here") or 0.0)) > 0.9
    )
    pad = int(rows["pad_id"])
    if (
        not predicts
        or rows.get("pad_side") != "right"
        or str(pad) in (targets.get("counted") or {})
    ):
        return None
    last = dict(targets["last_below"])
    total = max(last.pop("all", 0), 1)
    if total < 50 or max(last.values(), default=0) > 0.5 * total or not _has_beginning(rows):
        return None
    text = (
        f"the last target that counts is one of {len(last)} and more different ids: none is a "
        "terminator"
    )
    return Finding(
        "pipeline.special-tokens",
        "likely",
        0.85,
        "No text ends: there is no EOS among the targets",
        places(*outside_of_models(run, marked_lines(run, "pad"))[:2], *loader_sites(run)[::-1])[:4],
        (Evidence(text, "samples", value=max(last.values(), default=0) / total, expected=1.0),),
        Fix("Append an EOS to every text before padding, so that it is a target that counts."),
    )


def _has_beginning(rows: Mapping[str, Any]) -> bool:
    """All rows begin with one and the same id: texts as wholes, not pieces of a stream."""
    first = dict(rows.get("starts") or {})
    total = first.pop("all", 0)
    return bool(total >= 50 and max(first.values(), default=0) >= 0.95 * total)


def _lines(compared: tuple[Site, ...], run: Run) -> tuple[Site, ...]:
    loaders = loader_sites(run)
    near = [
        s
        for s in compared
        if any(
            site.file == s.file and site.line <= s.line <= site.line + 25 for site in loaders[1:]
        )
    ]
    told = marked_lines(
        run, "assign", names=("pad_token", "pad_token_id")
    )  # what a library's tokenizer is told to pad with
    return places(*near[:1], *told[:1], *compared[:1], *loaders[::-1])[:4]
