"""A position read for each sequence that is padding, because padding is on the other side

## What it sees
On deep steps, operators that read one position per sequence out of (batch, time, features), by
value, and the padding of the tokens behind it, or of rows of numbers that end in zeros and whose
lengths the model is given (without those, zeros may be values: a suspicion). Fires when such a read, feeding a loss with one
target per sequence, lands on padding in padded rows on every deep step; also when rows that are
padded on the left are packed by their lengths, which keeps the padding and cuts the text. The
earliest step is 0.

## Why it matters
The output for a short sequence is computed from filler: a recurrent state that has run past the
text, or a token that does not exist.

## Looks like
Training is slow or stalls; short inputs are judged worse than long ones; results change with the
batch they are in.

## Example
    ids = pad_sequence(rows, batch_first=True)
    logits = head(rnn(embed(ids))[0][:, -1])

## Use instead
    packed = pack_padded_sequence(embed(ids), lengths, batch_first=True, enforce_sorted=False)
    logits = head(rnn(packed)[1][-1])

## Confirm it
Nothing is left to confirm: position and padding are read off the tensors.

## False alarms
Left padding with the last position, right padding with the first or with the true lengths never
land on padding. A loop that reads one position after another reads all of them at one line and is
left alone; so is a loss with a target per position.

## References
Decoder models used as classifiers with the tokenizer's default side; transformers warns of it when
generating.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sawbones.evidence import NothingToJudge, exact, finding
from sawbones.evidence.limits import pipeline as limits
from sawbones.schema import DeepStep, Finding, Fix, Op, Run, Site, TokenInput
from sawbones.stats.loss_calls import as_site
from sawbones.trace.feeding import inside_collate, loader_sites
from sawbones.trace.graph import StepGraph, lookup
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import data_lines

NEEDS = ("deep",)
USES = ("source_lines", "loaders")
EXPLAINS = (
    "data.labels-misaligned",
    "evaluation.collapsed-prediction",
    "model.over-masking",
    "loss.pad-not-ignored",
)
EXPERIMENT = None
MIN_DEEP_STEPS = 2  # one batch may be an odd one
MAX_VALUES = 16  # of a target per sequence; with more, its second axis may be time

_Packing = tuple[DeepStep, TokenInput, Op]


def check(run: Run) -> Iterator[Finding]:
    reads = [(deep, found) for deep in run.deep if (found := _single_reads(deep))]
    packings = [(deep, token, op) for deep in run.deep for token, op in _packings(deep)]
    if len(reads) < MIN_DEEP_STEPS and len(packings) < MIN_DEEP_STEPS:
        raise NothingToJudge("no single position of padded rows is read, and no rows are packed")
    hits: list[tuple[DeepStep, Mapping[str, Any]]] = []
    for deep, found in reads:
        on_padding = [
            r
            for r in found
            if limits.READS_ON_PADDING.reached_by(r["on_padding"] / r["padded_rows"])
        ]
        hits += [(deep, r) for r in on_padding[:1]]
    if len(hits) >= MIN_DEEP_STEPS and limits.STEPS_SEEN_ON.reached_by(len(hits) / len(reads)):
        yield _read_on_padding(run, hits)
    else:
        yield from _packed(run, packings)


def _read_on_padding(run: Run, hits: list[tuple[DeepStep, Mapping[str, Any]]]) -> Finding:
    read = hits[0][1]
    padded, landed = (sum(r[name] for _, r in hits) for name in ("padded_rows", "on_padding"))
    side = read.get("pad_side") or "one"
    text = (
        f"{landed} of {padded} padded sequences are read at a padded position: positions "
        f"{read['at'][:6]} of rows with {read['lengths'][:6]} real tokens, padded on the {side} to "
        f"{read['width']}"
    )
    steps = [deep.step for deep, _ in hits[:5]]
    return finding(
        f"Padding is on the {side}, and the position that is read lies in it",
        _where(run, as_site(read["site"]), read_first=read.get("lengths_told") is not None),
        (exact(text, landed / padded, signal="deep", steps=steps),),
        at_most="suspected" if read.get("lengths_told") is False else "proven",
        fix=Fix(
            "Pad on the other side, or read each sequence at its own last (or first) real position."
        ),
    )


def _single_reads(deep: DeepStep) -> list[Mapping[str, Any]]:
    """Reads of one position per padded sequence, by lines that read no second one."""
    reads = [
        r
        for r in deep.probes.get("reads") or ()
        if r["padded_rows"] > 0 and _one_per_sequence(deep, r)
    ]
    sites = [as_site(r["site"]) for r in reads]
    return [r for r, site in zip(reads, sites, strict=True) if sites.count(site) == 1]


def _where(run: Run, used: Site | None, *, read_first: bool = False) -> tuple[Site, ...]:
    """Where rows are padded, if that was seen, then where the wrong end is read; of rows of numbers
    the other way round, as many lines put numbers into zeros.
    """
    pads = data_lines(run, "pad")
    collate = loader_sites(run)[1:]
    near = inside_collate(run, pads) if collate else pads
    lines = (used, *near[:1]) if read_first else (*near[:1], used)
    return locate(*lines, *collate, *loader_sites(run)[:1])[:4]


def _packed(run: Run, packings: list[_Packing]) -> Iterator[Finding]:
    """Packing keeps the first positions of every row, which are padding when rows are padded on the
    left.
    """
    padded = [p for p in packings if limits.PADDED_POSITIONS.passed_by(p[1].pad_share)]
    left = [p for p in padded if p[1].pad_side == "left"]
    if len(left) < MIN_DEEP_STEPS or not limits.STEPS_SEEN_ON.reached_by(len(left) / len(padded)):
        return
    _, token, op = left[0]
    text = (
        f"pack_padded_sequence keeps {op.outputs[0].shape[0]} of {token.shape[0] * token.shape[1]} "
        "positions, the first ones of every row; the rows are padded on the left, with "
        f"{list(token.lengths[:6])} real tokens in the first ones, on {len(left)} deep steps"
    )
    steps = [deep.step for deep, _, _ in left[:5]]
    yield finding(
        "Padding is on the left, and packing keeps it instead of the text",
        _where(run, op.site),
        (exact(text, token.pad_share, signal="deep", steps=steps),),
        Fix(
            "Pad on the right before packing: packing keeps the first positions of every "
            "row, as many as its length says."
        ),
    )


def _packings(deep: DeepStep) -> Iterator[tuple[TokenInput, Op]]:
    """Vectors of tokens that are packed by lengths of which some are shorter than the row."""
    graph = StepGraph(deep)
    for token in deep.tokens:
        start = lookup(deep, token) if token.role == "tokens" and len(token.shape) == 2 else None
        reached = graph.reached(start.outputs) if start is not None else set()
        for op in graph.ops:
            if op.name == "_pack_padded_sequence" and op.inputs[0].id in reached and op.outputs:
                if token.shape[0] * token.shape[1] - op.outputs[0].shape[0] > 0:
                    yield token, op
                break


def _one_per_sequence(deep: DeepStep, read: Mapping[str, Any]) -> bool:
    """The step's loss has as many targets as there are sequences, or one value per sequence."""
    for call in deep.losses:
        if call.facts.main and call.target is not None:
            rows, *rest = call.target.shape or (0,)
            return rows == read["rows"] and len(rest) <= 1 and all(n <= MAX_VALUES for n in rest)
    return False
