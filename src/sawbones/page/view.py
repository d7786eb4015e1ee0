"""Run -> what the page shows beside its curves, as plain JSON: findings, layers, data, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sawbones.diagnosis import diagnose_run
from sawbones.masking import mask_all, shown_line
from sawbones.report import figures, wording
from sawbones.schema import Activation, DeepStep, Finding, Op, Run
from sawbones.stats.evaluations import validation_curve
from sawbones.store import read_run

MOST_ROWS = 60
MOST_CLASSES = 40
Block = dict[str, Any]


def view(folder: str) -> tuple[Block, Run]:
    """What stands on the page beside the curves, and the run that it was read off."""
    run = read_run(folder)
    report = diagnose_run(run).report
    found = {
        "script": run.script,
        "command": " ".join(run.argv),
        "ending": run.ending.kind,
        "world_size": run.world_size,
        "environment": {str(k): str(v) for k, v in run.environment.items()},
        "verdict": report.verdict,
        "findings": [_finding(finding) for finding in report.findings],
        "symptoms": [
            {"text": wording.symptom(s), "steps": list(s.steps[:1]), "ill": s.cls == "ill"}
            for s in report.symptoms
        ],
        "bands": figures.evidence_bands(report.findings),
        "evaluation": _evaluation(run),
        "layers": _layers(run),
        "data": _data(run),
        "ranks": _ranks(run),
    }
    masked: Block = mask_all(found)
    return masked, run


def _finding(finding: Finding) -> Block:
    return {
        "fault": finding.fault,
        "status": finding.status,
        "title": finding.title,
        "where": str(finding.where[0]) if finding.where else "",
        "code": finding.where[0].code.strip() if finding.where else "",
        "evidence": [evidence.text for evidence in finding.evidence[:3]],
        "fix": finding.fix.summary if finding.fix is not None else "",
        "steps": sorted({step for e in finding.evidence for step in e.steps})[:1],
    }


def _evaluation(run: Run) -> Block | None:
    steps, values, _ = validation_curve(run)
    known = [
        (int(s), figures.short(float(v)))
        for s, v in zip(steps, values, strict=True)
        if np.isfinite(v)
    ]
    if not known:
        return None
    return {"x": [step for step, _ in known], "y": [value for _, value in known]}


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], why: str = "") -> Block:
    """`why`: what is said where there are no rows."""
    cells = [[_cell(value) for value in row] for row in rows[:MOST_ROWS]]
    left = len(rows) - len(cells)
    note = f"and {left} more" if left > 0 else ""
    return {"title": title, "heads": list(heads), "rows": cells, "why": why, "note": note}


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return wording.number(value) if isinstance(value, float) else shown_line(str(value))


def picture(title: str, figure: figures.Figure | None, why: str) -> Block:
    return {"title": title, "figure": figure, "why": "" if figure is not None else why}


def _layers(run: Run) -> list[Block]:
    deep = run.deep[-1] if run.deep else None
    no_deep = "no deep step was recorded yet"
    blocks = [
        picture("Gradient norm by layer", figures.layers(run), "no gradient was recorded yet"),
        picture(
            "Update norm by layer",
            figures.layers(run, "update_l2"),
            "no update was measured yet (on a CPU that is done on sampled steps)",
        ),
    ]
    if deep is None:
        return [*blocks, table("Activations", (), (), no_deep)]
    at = f", at deep step {deep.step}"
    activations = [_activation_row(item) for item in deep.activations]
    heads: tuple[str, ...] = (
        "layer",
        "class",
        "mean",
        "std",
        "1 %",
        "25 %",
        "50 %",
        "75 %",
        "99 %",
        "dead units",
    )
    blocks.append(table(f"Activations{at}", heads, activations, "none was seen at that step"))
    for item in [item for item in deep.influence if item.map][:2]:
        title = f"Influence of {item.source} on the outputs{at}"
        blocks.append(picture(title, figures.influence(item), ""))
    attention = [
        (a.module or a.kind, a.entropy, a.future_mass, a.self_mass, a.pad_mass)
        for a in deep.attention
    ]
    heads = ("layer", "entropy (1 = uniform)", "on the future", "on itself", "on padding")
    blocks.append(table(f"Attention{at}", heads, attention, "this model shows no attention"))
    operators = [_operator_row(op) for op in deep.ops]
    heads = ("operator", "in", "out", "module", "line")
    blocks.append(table(f"What a step does{at}", heads, operators, "no operator was recorded"))
    return blocks


def _activation_row(item: Activation) -> tuple[Any, ...]:
    quantiles = [*item.quantiles[:5], *[None] * (5 - len(item.quantiles[:5]))]
    return (item.module, item.cls, item.mean, item.std, *quantiles, f"{item.dead_units:.0%}")


def _operator_row(op: Op) -> tuple[Any, ...]:
    into = ", ".join("x".join(map(str, value.shape)) for value in op.inputs[:4])
    out = ", ".join("x".join(map(str, value.shape)) for value in op.outputs[:2])
    return (op.name, into, out, op.module, str(op.site or ""))


def _data(run: Run) -> list[Block]:
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
    blocks = [table(f"The batch of step {last.step}", heads, rows)]
    deep = run.deep[-1] if run.deep else None
    blocks.append(_labels(deep))
    if deep is not None:
        blocks += [_lengths(deep)] if deep.tokens else []
    return blocks


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


def _lengths(deep: DeepStep) -> Block:
    token = max(deep.tokens, key=lambda item: len(item.lengths))
    title = f"Tokens per row at deep step {deep.step}, padding {token.pad_share:.0%}"
    if not token.lengths:
        return picture(title, None, "no padding was found, so all rows are full")
    counts, edges = np.histogram(token.lengths, bins=min(20, len(set(token.lengths)) or 1))
    names = [f"{edge:.0f}" for edge in edges[:-1]]
    return picture(title, columns(names, "rows", [float(n) for n in counts]), "")


def columns(names: list[str], unit: str, values: list[float]) -> figures.Figure:
    return {
        "kind": "columns",
        "height": 200,
        "names": names,
        "series": [{"name": unit, "values": values}],
    }


def _ranks(run: Run) -> list[Block]:
    every = (run, *run.ranks)
    if len(every) < 2:
        return [table("Ranks", (), (), "this run has one process")]
    rows = []
    for one in every:
        if one.num_steps:
            medians = [float(np.nanmedian(one.steps[n])) for n in ("step_ms", "data_wait_ms")]
            rows.append((one.rank, one.num_steps, *medians))
    heads = ("rank", "steps", "step, ms (median)", "waiting for data, ms")
    drawn = columns([str(row[0]) for row in rows], "ms a step", [row[2] for row in rows])
    return [table("Ranks", heads, rows), picture("Step time by rank", drawn, "")]
