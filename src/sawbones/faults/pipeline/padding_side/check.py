"""A position read for each sequence that is padding, because padding is on the other side

## What it sees
On deep steps, operators that read one position per sequence out of (batch, time, features), by
value, and the padding of the tokens behind it. Fires when such a read, feeding a loss with one
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

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Op, Run, Site, TokenInput
from sawbones.stats.data_lines import loader_sites, marked_lines, outside_of_models
from sawbones.stats.dataflow import Flow, lookup
from sawbones.stats.loss_calls import as_site, places

NEEDS = ("deep", "tokens")
EXPLAINS = (
    "data.labels-misaligned",
    "evaluation.collapsed-prediction",
    "model.over-masking",
    "loss.pad-not-ignored",
)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    hits: list[tuple[DeepStep, Mapping[str, Any]]] = []
    looked = 0
    for deep in run.deep:
        reads = [
            r
            for r in deep.probes.get("reads") or ()
            if r["padded_rows"] > 0 and _one_per_sequence(deep, r)
        ]
        sites = [as_site(r["site"]) for r in reads]
        single = [r for r, site in zip(reads, sites, strict=True) if sites.count(site) == 1]
        if single:
            looked += 1
            hits += [
                (deep, r)
                for r in single
                if r["on_padding"] > 0 and r["on_padding"] >= 0.15 * r["padded_rows"]
            ][:1]
    if looked < 2 or len(hits) < max(2, 0.6 * looked):
        yield from _packed(run)
        return
    read = hits[0][1]
    padded, landed = sum(r["padded_rows"] for _, r in hits), sum(r["on_padding"] for _, r in hits)
    side = read.get("pad_side") or "one"
    yield Finding(
        "pipeline.padding-side",
        "proven",
        0.95,
        f"Padding is on the {side}, and the position that is read lies in it",
        _where(run, as_site(read["site"])),
        (
            Evidence(
                f"{landed} of {padded} padded sequences are read at a padded position: positions {read['at'][:6]} of rows with "
                f"{read['lengths'][:6]} real tokens, padded on the {side} to {read['width']}",
                "deep",
                tuple(d.step for d, _ in hits[:5]),
                landed / padded,
                0.0,
            ),
        ),
        Fix(
            "Pad on the other side, or read each sequence at its own last (or first) real position."
        ),
    )


def _where(run: Run, used: Site | None) -> tuple[Site, ...]:
    """Where rows are padded, if that was seen, then where the wrong end is read."""
    pads = outside_of_models(run, marked_lines(run, "pad"))
    collate = loader_sites(run)[1:]
    near = (
        [
            s
            for s in pads
            if any(c.file == s.file and c.line <= s.line <= c.line + 15 for c in collate)
        ]
        if collate
        else list(pads)
    )
    return places(*near[:1], used, *collate, *loader_sites(run)[:1])[:4]


def _packed(run: Run) -> Iterator[Finding]:
    """Packing keeps the first positions of every row, which are padding when rows are padded on the
    left.
    """
    cut = [(deep, token, op) for deep in run.deep for token, op in _packings(deep)]
    left = [
        (deep, token, op)
        for deep, token, op in cut
        if token.pad_side == "left" and token.pad_share > 0.05
    ]
    padded = [token for _, token, _ in cut if token.pad_share > 0.05]
    if len(left) < 2 or len(left) < 0.6 * len(padded):
        return
    _, token, op = left[0]
    text = (
        f"pack_padded_sequence keeps {op.outputs[0].shape[0]} of {token.shape[0] * token.shape[1]} positions, the first ones of "
        f"every row; the rows are padded on the left, with {list(token.lengths[:6])} real tokens in the first ones, on {len(left)} "
        "deep steps"
    )
    yield Finding(
        "pipeline.padding-side",
        "proven",
        0.95,
        "Padding is on the left, and packing keeps it instead of the text",
        _where(run, op.site),
        (Evidence(text, "deep", tuple(d.step for d, _, _ in left[:5]), token.pad_share, 0.0),),
        Fix(
            "Pad on the right before packing: packing keeps the first positions of every "
            "row, as many as its length says."
        ),
    )


def _packings(deep: DeepStep) -> Iterator[tuple[TokenInput, Op]]:
    """Vectors of tokens that are packed by lengths of which some are shorter than the row."""
    flow = Flow(deep)
    for token in deep.tokens:
        start = lookup(deep, token) if token.role == "tokens" and len(token.shape) == 2 else None
        reached = flow.reached([v.id for v in start.outputs]) if start is not None else set()
        for op in flow.ops:
            if op.name == "_pack_padded_sequence" and op.inputs[0].id in reached and op.outputs:
                if op.outputs[0].shape[0] < token.shape[0] * token.shape[1]:
                    yield token, op
                break


def _one_per_sequence(deep: DeepStep, read: Mapping[str, Any]) -> bool:
    """The step's loss has as many targets as there are sequences, or one value per sequence."""
    for call in deep.losses:
        if call.facts.get("main") and call.target is not None:
            size = call.target.shape
            return (
                bool(size)
                and size[0] == read["rows"]
                and (len(size) == 1 or (all(n <= 16 for n in size[1:]) and len(size) == 2))
            )
    return False
