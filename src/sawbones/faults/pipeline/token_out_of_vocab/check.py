"""An id past the end of the table that it is looked up in

## What it sees
The exception of the embedding, the table it has and the ids it was given, and the smallest and
largest id of every sample of the batch. Fires when the batch itself holds an id that is not in [0,
rows of the table), and when gather, scatter, index_add, index_select or x[ids] was given an index
beyond the axis that it points into. Fires on the step of the crash.

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

from sawbones.evidence import NothingToJudge, context, exact, explained, finding, refused
from sawbones.schema import Finding, Fix, Run, Site, Size
from sawbones.stats.crash_indices import outside
from sawbones.stats.crash_shapes import written
from sawbones.stats.crashes import crash, makers, refusal
from sawbones.stats.failures import failure, samples_text, user_frames
from sawbones.trace.feeding import loader_sites
from sawbones.trace.locate import locate

NEEDS = ("crash",)
USES = ("source_lines", "loaders")
EXPLAINS = ("model.position-bounds",)
EXPERIMENT = None
LOOKUPS = ("embedding", "index_select", "__getitem__", "embedding_bag")


def check(run: Run) -> Iterator[Finding]:
    past = _past_the_axis(run)
    if past is not None:
        yield past
        return
    failed = failure(run)
    inputs = failed.inputs if failed is not None and failed.op in LOOKUPS else ()
    kinds = [(str(v.get("dtype", "")), v) for v in inputs]
    tables = [
        v
        for dtype, v in kinds
        if dtype.startswith(("float", "bfloat")) and len(v.get("shape") or ()) == 2
    ]
    ids = [v for dtype, v in kinds if dtype.startswith("int")]
    if failed is None or not tables or not ids or ids[0].get("max") is None:
        raise NothingToJudge("the script did not crash where ids are looked up in a table")
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
        yield finding(
            f"Token id {value} where the embedding has rows 0 to {size - 1}",
            _where(run, size),
            (
                refused(
                    f"id {value} against a table of {size} rows, at {failed.site}",
                    value=value,
                    expected=size - 1,
                    steps=(failed.step,),
                ),
                exact(
                    f"{samples_text(run, tensor, rows)} hold such ids ({len(rows)} of "
                    f"{len(row_max)})",
                    len(rows),
                    signal="crash",
                ),
                context(
                    f"{failed.step} steps went well before: such tokens are rare",
                    signal="steps",
                    steps=(failed.step,),
                ),
            ),
            Fix(
                "Size the embedding by the tokenizer after the last token was added, or "
                "map unknown words to UNK when encoding."
            ),
        )
        return


def _past_the_axis(run: Run) -> Finding | None:
    """gather, scatter, index_add and x[i]: ids that are no row numbers."""
    call = refusal(run) if run.ending.crash is not None else None
    found = outside(call) if call is not None else None
    if call is None or found is None:
        return None
    name, table = found.index.name, found.table.name
    if found.value < 0 and call.expression.kind == "subscript" and found.value >= -found.size:
        return None  # counted from the end
    made = [a for a in makers(run, name) if a.text]
    rows = f"0 to {found.size - 1}"
    fix = (
        f"Number the ids of {name} from 0 on where they are made "
        f"({{id: row for row, id in enumerate(ids)}}), or make {table} with {found.high + 1} rows."
    )
    if found.value == found.size and found.low > 0:
        fix = f"The ids count from {found.low}: use {name} - {found.low}, or one more row."
    elif found.value < 0:
        fix = f"{found.value} stands for no row: leave such places out, or map them to a row."
    return explained(
        run,
        f"{name} holds {found.value} where axis {found.axis} of {table} has the rows {rows}",
        (*(a.site for a in made[2::-1]), call.frame.site),
        Fix(fix),
        expected=f"indices from {rows}",
        got=f"{found.low} to {found.high} in {name}",
        because="; ".join(f"{a.name} comes from {a.text} (line {a.site.line})" for a in made[:3]),
        sizes=[
            Size(g.name, written(g.bound.shape), g.bound.dtype) for g in (found.table, found.index)
        ],
        exactly=(found.value, found.size - 1 if found.value > 0 else 0),
    )


def _grown(run: Run) -> list[Site]:
    """Where the size of the table was taken, after the line that changed afterwards what it was
    taken from.
    """
    traces = [t.lines for t in crash(run).traces if t.subject.startswith("built ")]
    for lines in traces:
        later = [o for o in lines if o.how == "changed"]
        if later:
            return [later[-1].site, *(lines[o.parent].site for o in later[-1:] if o.parent >= 0)]
    return []


def _where(run: Run, size: int) -> tuple[Site, ...]:
    """Where the size was set, where the table was built, then where it was read."""
    assigned = [r.site for r in run.source_lines if r.kind == "assign" and r.value == size]
    built = [m.built for m in run.modules if m.settings.get("num_embeddings") == size]
    grown = _grown(run) if run.ending.crash is not None else []
    return locate(*grown, *assigned[:1], *built[:1], *user_frames(run)[:1], *loader_sites(run))[:4]
