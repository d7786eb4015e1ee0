"""The section about the data: examples of the latest batch, labels, lengths, and what evaluations
answered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sawbones.masking import mask_all, shown_line
from sawbones.page.blocks import Block, cell, columns, picture, table
from sawbones.report import figures, wording
from sawbones.schema import DeepStep, Evaluated, Run
from sawbones.store.shown import read_samples

MOST_CLASSES = 40
_KINDS = ("pictures", "text", "ids", "numbers")


def data(run: Run) -> list[Block]:
    if not run.batches:
        return [table("Batches", (), (), "no batch was seen yet")]
    last = run.batches[-1]
    rows = [
        (
            tensor.get("path") or "(batch)",
            "x".join(map(str, tensor.get("shape", ()))),
            tensor.get("dtype"),
            *(_number(tensor.get(name)) for name in ("min", "max", "mean", "std")),
        )
        for tensor in last.tensors
    ]
    heads = ("tensor", "shape", "dtype", "min", "max", "mean", "std")
    phase = "training" if last.phase == "train" else "evaluation"
    deep = run.deep[-1] if run.deep else None
    told = [
        table(f"The latest batch that was described, of step {last.step} ({phase})", heads, rows),
        _labels(deep),
        _lengths(deep),
        *answers(run),
    ]
    masked: list[Block] = mask_all(told)
    return [samples(run), *masked]


def samples(run: Run) -> Block:
    found = read_samples(run.folder)
    if found is None:
        why = "samples are kept by `sawbones run --page` alone, in the run folder"
        return {"title": "Samples", "samples": None, "why": why}
    shown = [one for one in map(_column, found["columns"]) if one is not None]
    title = f"Samples of the batch of step {found.get('step')}"
    why = "" if shown else shown_line(str(found.get("why") or "none could be read"))
    masked: list[Any] = [c if c["kind"] == "pictures" else mask_all(c) for c in shown]
    return {"title": title, "samples": masked, "why": why}


def _column(found: Any) -> dict[str, Any] | None:
    """As the page can show it; None where the file says something that no recorder writes."""
    if not isinstance(found, dict) or found.get("kind") not in _KINDS:
        return None
    values = [str(value) for value in found.get("values", ())][:8]
    made = {"name": shown_line(str(found.get("name"))), "kind": found["kind"], "values": values}
    if found["kind"] == "pictures":
        size = [found.get(name) for name in ("width", "height")]
        if not all(isinstance(n, int) and 0 < n <= 256 for n in size):
            return None
        low, high = (cell(_number(found.get(name))) for name in ("low", "high"))
        return {**made, "width": size[0], "height": size[1], "note": f"black {low}, white {high}"}
    made["values"] = [shown_line(value) for value in values]
    return {**made, "note": shown_line(str(found.get("why") or ""))}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _labels(deep: DeepStep | None) -> Block:
    counts: dict[Any, Any] = {}
    for loss in deep.losses if deep is not None else ():
        counts = dict(loss.facts.target_counts) or counts
    if deep is None or not counts:
        return picture("Labels", None, "no targets that are class numbers were seen")
    names = sorted(counts, key=lambda name: float(name))[:MOST_CLASSES]
    return picture(
        f"Labels of deep step {deep.step}",
        columns([str(name) for name in names], "targets", [float(counts[n]) for n in names]),
        "",
    )


def _lengths(deep: DeepStep | None) -> Block:
    if deep is None or not deep.tokens:
        return picture("Lengths and padding", None, "no token ids were seen at a deep step")
    token = max(deep.tokens, key=lambda item: len(item.lengths))
    title = f"Tokens per row at deep step {deep.step}, padding {token.pad_share:.0%}"
    if not token.lengths:
        return picture(title, None, "no padding was found, so all rows are full")
    counts, edges = np.histogram(token.lengths, bins=min(20, len(set(token.lengths)) or 1))
    names = [f"{edge:.0f}" for edge in edges[:-1]]
    return picture(title, columns(names, "rows", [float(n) for n in counts]), "")


def answers(run: Run) -> list[Block]:
    last = next((one for one in reversed(run.evaluated) if one.matrix), None)
    if last is None:
        why = (
            "no evaluation of a classifier of at most 64 classes was seen whose labels came out of "
            "a DataLoader or went into a loss function"
        )
        return [picture("Confusion of the last evaluation", None, why)]
    after = f"the evaluation after {wording.plural(last.step, 'step')}"
    share = f"{last.accuracy:.1%} of {sum(last.asked)} answers are right"
    note = share + (f" (1 in {last.skipped} was counted)" if last.skipped > 1 else "")
    note += f"; rank {run.rank}'s share alone" if run.world_size > 1 else ""
    return [
        picture(f"Confusion in {after}", confusion(last), "", note),
        picture(f"Accuracy by class in {after}, %", by_class(last), ""),
    ]


def confusion(last: Evaluated) -> figures.Figure:
    size = len(last.matrix)
    return {
        "kind": "map",
        "height": 60 + max(12, min(34, 420 // size)) * size,
        "x": [str(i) for i in range(size)],
        "y": [f"true {i}" for i in range(size)],
        "z": [list(row) for row in last.matrix],
        "low": 0,
        "high": max(max(row) for row in last.matrix),
        "unit": "answers",
        "x_title": "answered",
        "numbers": size <= 16,
    }


def by_class(last: Evaluated) -> figures.Figure:
    asked = [i for i, count in enumerate(last.asked) if count][:MOST_CLASSES]
    values = [round(100 * last.right[i] / last.asked[i], 1) for i in asked]
    return columns([str(i) for i in asked], "% right", values)


def accuracy(run: Run) -> dict[str, list[float]] | None:
    """One point for each evaluation that was counted, over the loader that came last."""
    if not run.evaluated:
        return None
    source = run.evaluated[-1].source
    own = [one for one in run.evaluated if one.source == source]
    return {"x": [one.step for one in own], "y": [figures.short(one.accuracy) for one in own]}
