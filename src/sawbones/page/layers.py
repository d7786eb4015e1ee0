"""The section by layer: gradients, updates, activations, weights, attention, influence, and what a
step does. Whatever is of one deep step says which.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sawbones.page.blocks import Block, columns, gallery, picture, table
from sawbones.report import figures, series
from sawbones.schema import Activation, DeepStep, Op, Run, Weights

QUANTILES = (1, 10, 50, 90, 99)
MOST_HISTOGRAMS = 24
MOST_MAPS = 6
_NO_DEEP = "no deep step was recorded yet"
_HEADS = tuple(f"{q} %" for q in QUANTILES)


def layers(run: Run) -> list[Block]:
    blocks = [
        _norms(run, "grad_l2", "Gradient norm", "no gradient was recorded yet"),
        _norms(
            run,
            "update_l2",
            "Update norm",
            "no update was measured yet (on a CPU that is done on sampled steps)",
        ),
        _activation_map(run),
    ]
    deep = run.deep[-1] if run.deep else None
    if deep is None:
        names = ("Activations", "Weights", "Attention", "Influence", "What a step does")
        return [*blocks, *(table(name, (), (), _NO_DEEP) for name in names)]
    at = f", at deep step {deep.step}"
    rows = [_activation_row(item) for item in deep.activations]
    heads = ("layer", "class", "mean", "std", *_HEADS, "dead units")
    blocks.append(table(f"Activations{at}", heads, rows, "none was seen at that step"))
    blocks.append(_weights(deep, at))
    blocks += _attention(deep, at)
    blocks += _influence(deep, at)
    heads = ("times", "operator", "in", "out", "module", "line")
    rows = operators(deep.ops)
    blocks.append(
        table(
            f"What a step does, operator by operator{at}", heads, rows, "no operator was recorded"
        )
    )
    return blocks


def _norms(run: Run, statistic: str, title: str, why: str) -> Block:
    drawn = picture(f"{title} by layer", figures.layers(run, statistic), why)
    rows = quantiles_by_layer(run, statistic)
    spread = table("", ("layer", *_HEADS), rows)
    return {**spread, **drawn, "folded": "quantiles over the recorded steps"}


def quantiles_by_layer(run: Run, statistic: str) -> list[tuple[Any, ...]]:
    found = series.layer_norms(run, statistic)
    rows: list[tuple[Any, ...]] = []
    for name, norms in found:
        known = norms[np.isfinite(norms) & (norms >= 0)]
        if len(known):
            rows.append((name or "(model)", *map(float, np.percentile(known, QUANTILES))))
    return rows


def _activation_map(run: Run) -> Block:
    """The spread of every layer's outputs over the deep steps."""
    title = "Standard deviation of activations by layer, at the deep steps"
    steps = [deep for deep in run.deep if deep.activations]
    names = list(dict.fromkeys(_name(a) for deep in steps for a in deep.activations))
    names = names[: series.MOST_LAYERS]
    if not names:
        return picture(title, None, _NO_DEEP if not run.deep else "none was seen at a deep step")
    by_step = [{_name(a): a for a in deep.activations} for deep in steps]
    z, marks = [], []
    for name in names:
        values = [found[name].std if name in found else None for found in by_step]
        broken = [name in found and found[name].nonfinite > 0 for found in by_step]
        z.append([_log(v) for v in values])
        marks.append(
            [
                series.NONFINITE_CELL if bad else series.ZERO_CELL if value == 0 else None
                for value, bad in zip(values, broken, strict=True)
            ]
        )
    figure = figures.magnitudes(names, [deep.step for deep in steps], z, marks)
    return picture(
        title,
        {**figure, "unit": "log10 of the standard deviation", "legend": "standard deviation"},
        "",
    )


def _log(value: float | None) -> float | None:
    return round(float(np.log10(value)), 2) if value and value > 0 and np.isfinite(value) else None


def _name(item: Activation) -> str:
    return f"{item.module or item.cls}{f' #{item.call}' if item.call else ''}"


def _activation_row(item: Activation) -> tuple[Any, ...]:
    spread = [*item.spread[:5], *[None] * (5 - len(item.spread[:5]))]
    return (_name(item), item.cls, item.mean, item.std, *spread, f"{item.dead_units:.0%}")


def _weights(deep: DeepStep, at: str) -> Block:
    shown = sorted(deep.weights, key=lambda w: -int(np.prod(w.shape)))[:MOST_HISTOGRAMS]
    names = {w.name for w in shown}
    drawn = [(_weights_name(w), histogram(w)) for w in deep.weights if w.name in names]
    block = gallery(f"Weights{at}", drawn, "no weights were looked at at that step")
    left = len(deep.weights) - len(drawn)
    return {**block, "note": f"and {left} smaller ones" if left else ""}


def _weights_name(weights: Weights) -> str:
    broken = f", {weights.nonfinite} not finite" if weights.nonfinite else ""
    return f"{weights.name} {'x'.join(map(str, weights.shape))}{broken}"


def histogram(weights: Weights) -> figures.Figure:
    edges = np.linspace(weights.low, weights.high, len(weights.counts) + 1)
    names = [f"{(a + b) / 2:.2g}" for a, b in itertools.pairwise(edges.tolist())]
    return columns(names, "values", [float(n) for n in weights.counts], height=110)


def _attention(deep: DeepStep, at: str) -> list[Block]:
    rows = [
        (a.module or a.kind, a.entropy, a.future_mass, a.self_mass, a.pad_mass)
        for a in deep.attention
    ]
    heads = ("layer", "entropy (1 = uniform)", "on the future", "on itself", "on padding")
    maps = [(a.module or a.kind, figures.attention(a)) for a in deep.attention if a.map]
    blocks = [table(f"Attention{at}", heads, rows, "this model shows no attention")]
    if maps:
        title = f"Attention maps{at}: mean over examples and heads"
        blocks.append(gallery(title, maps[:MOST_MAPS], ""))
    return blocks


def _influence(deep: DeepStep, at: str) -> list[Block]:
    found = [item for item in deep.influence if item.map][:2]
    if not found:
        why = "no token input was seen, or the model could not be probed"
        return [picture(f"Influence{at}", None, why)]
    return [
        picture(f"Influence of {i.source} on the outputs{at}", figures.influence(i), "")
        for i in found
    ]


def operators(ops: tuple[Op, ...]) -> list[tuple[Any, ...]]:
    """What follows itself on the same line, such as a loop over samples, is one row."""
    rows: list[tuple[Any, ...]] = []
    for cycle, times in _cycles([_operator_row(op) for op in ops]):
        rows += [(str(times) if times > 1 else "", *row) for row in cycle]
    return rows


def _cycles(rows: list[tuple[Any, ...]]) -> list[tuple[list[tuple[Any, ...]], int]]:
    found: list[tuple[list[tuple[Any, ...]], int]] = []
    at = 0
    while at < len(rows):
        size, times = _longest_cycle(rows, at)
        found.append((rows[at : at + size], times))
        at += size * times
    return found


def _longest_cycle(rows: list[tuple[Any, ...]], at: int, most: int = 4) -> tuple[int, int]:
    """(operators, times) of what is repeated from here on, if anything is."""
    best = (1, 1)
    for size in range(1, most + 1):
        times = 1
        while rows[at + times * size : at + (times + 1) * size] == rows[at : at + size]:
            times += 1
        if times > 1 and size * times > best[0] * best[1]:
            best = (size, times)
    return best


def _operator_row(op: Op) -> tuple[Any, ...]:
    into = ", ".join("x".join(map(str, value.shape)) or "1" for value in op.inputs[:4])
    out = ", ".join("x".join(map(str, value.shape)) or "1" for value in op.outputs[:2])
    return (op.name, into, out, op.module, str(op.site or ""))
