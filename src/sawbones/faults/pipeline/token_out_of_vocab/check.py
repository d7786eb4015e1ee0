"""A token id past the end of the embedding table

## What it sees
The exception of the embedding, the table it has and the ids it was given, and the smallest and
largest id of every sample of the batch. Fires when the batch itself holds an id that is not in [0,
rows of the table). Fires on the step of the crash.

## Why it matters
The run dies on the first text with a rare token, maybe after hours; on a GPU as a device-side
assert without a line.

## Looks like
IndexError: index out of range in self, at another step with every seed.

## Example
    vocab_size = len(tokenizer)
    tokenizer.add("<sep>")
    embedding = nn.Embedding(vocab_size, 64)

## Use instead
    tokenizer.add("<sep>")
    embedding = nn.Embedding(len(tokenizer), 64)

## Confirm it
Nothing is left to confirm: id and table size are in the record.

## False alarms
Position ids past their table are not in the batch: they are counted, not fed, and belong to
model.position-bounds. Only crashes are looked at.

## References
Special tokens added after the model was built; vocabularies cut to the most frequent words while
rare ones keep their ids.
"""

from __future__ import annotations

from collections.abc import Iterator

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.data_lines import loader_sites
from sawbones.stats.failures import failure, user_frames
from sawbones.stats.loss_calls import places

NEEDS = ("crash",)
EXPLAINS = ("model.position-bounds",)
EXPERIMENT = None


def check(run: Run) -> Iterator[Finding]:
    failed = failure(run)
    if failed is None or failed.op not in (
        "embedding",
        "index_select",
        "__getitem__",
        "embedding_bag",
    ):
        return
    tables = [
        v
        for v in failed.inputs
        if len(v.get("shape") or ()) == 2
        and str(v.get("dtype", "")).startswith(("float", "bfloat"))
    ]
    ids = [v for v in failed.inputs if str(v.get("dtype", "")).startswith("int")]
    if not tables or not ids or ids[0].get("max") is None:
        return
    size, high, low = int(tables[0]["shape"][0]), int(ids[0]["max"]), int(ids[0]["min"])
    value = high if high >= size else low
    if 0 <= value < size:
        return
    for tensor in (run.ending.batch or {}).get("tensors") or ():
        row_max, row_min = tensor.get("row_max") or [], tensor.get("row_min") or []
        rows = [
            i for i, (a, b) in enumerate(zip(row_min, row_max, strict=True)) if b >= size or a < 0
        ]
        if not rows or value not in (*row_max, *row_min):
            continue
        yield Finding(
            "pipeline.token-out-of-vocab",
            "proven",
            0.98,
            f"Token id {value} where the embedding has rows 0 to {size - 1}",
            _where(run, size),
            (
                Evidence(
                    f"id {value} against a table of {size} rows, at {failed.site}",
                    "crash",
                    (failed.step,),
                    float(value),
                    float(size - 1),
                ),
                Evidence(
                    (
                        f"samples {rows[:8]} of the batch hold such ids ({len(rows)} of "
                        f"{len(row_max)})"
                    ),
                    "crash",
                    value=float(len(rows)),
                ),
                Evidence(
                    f"{failed.step} steps went well before: such tokens are rare",
                    "steps",
                    (failed.step,),
                ),
            ),
            Fix(
                "Size the embedding by the tokenizer after the last token was added, or "
                "map unknown words to UNK when encoding."
            ),
        )
        return


def _where(run: Run, size: int) -> tuple[Site, ...]:
    """Where the size was set, where the table was built, then where it was read."""
    exact = [s for s, v in _assigned(run) if v == size]
    built = [m.built for m in run.modules if m.settings.get("num_embeddings") == size]
    return places(*exact[:1], *built[:1], *user_frames(run)[:1], *loader_sites(run))[:4]


def _assigned(run: Run) -> list[tuple[Site, int]]:
    rows = [
        r
        for r in run.facts.get("source_lines") or ()
        if r["kind"] == "assign" and r.get("value") is not None
    ]
    return [(Site(r["file"], r["line"], r["function"], r["code"]), int(r["value"])) for r in rows]
