"""First weights that are too large, or the same for every unit

## What it sees
On the first deep step, before any update: weight matrices whose entries are all equal and not zero (all units compute the same
and get the same gradient), and a first classification loss that is more than twice log C while the weights are at least three
times larger than inputs of that width call for (spread times the root of the number of inputs; common schemes give 0.1 to 1.5).
Later, matrices of zeros whose gradient stays zero. Step 0.

## Why it matters
Equal units stay equal: a layer of 512 learns like a layer of 1. Weights that are too large make the first predictions sure and
wrong, saturate what follows, and most of the training undoes that.

## Looks like
The first loss is far from log C (2.3 for 10 classes), activations grow from layer to layer; or the model learns hardly anything.

## Example
    nn.init.constant_(layer.weight, 0.05)

## Use instead
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

## Confirm it
The weights themselves, read before the first update, are the proof.

## False alarms
Biases and the scales of normalisations start equal on purpose and have one dimension. A zero-initialised head or residual branch
gets a gradient at once and its inputs' layers from the second step on. Raw inputs of 0 to 255 also give a large first loss, but
then the weights have a normal size.

## References
Glorot and Bengio 2010; He et al. 2015. "Verify the loss at init" is the first advice of Karpathy's recipe.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sawbones.schema import DeepStep, Evidence, Finding, Fix, Run, Site, Value
from sawbones.stats.failures import numbers_equal
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.sequences import main_call

NEEDS = ("deep", "tensors")
EXPLAINS = (
    "optimizer.lr-too-high", "model.dead-units", "model.vanishing-gradients", "model.attention-scale", "loop.exploding-gradients",
    "optimizer.lr-too-low", "loop.loss-spike",
)  # fmt: skip
EXPERIMENT = None
LARGE = 3.0
FIRST_LOSS = 2.0
_WRITING = ("fill_", "constant_", "zero_", "normal_", "uniform_", "trunc_normal_", "kaiming_normal_", "kaiming_uniform_")


def check(run: Run) -> Iterator[Finding]:
    if not run.deep or run.deep[0].step > 1:
        return
    deep = run.deep[0]
    yield from _equal_units(run, deep)
    yield from _too_large(run, deep)


def _finding(title: str, evidence: Evidence, where: tuple[Site, ...], fix: str) -> Finding:
    return Finding("model.bad-init", "proven", 0.95, title, where, (evidence,), Fix(fix))


def _equal_units(run: Run, deep: DeepStep) -> Iterator[Finding]:
    found: dict[int, tuple[Value, str]] = {}
    for op in deep.ops:
        for value in op.inputs:
            large = len(value.shape) >= 2 and min(value.shape[:2]) > 1 and value.requires_grad and op.name != "embedding"
            if deep.step == 0 and large and op.module and value.std == 0.0 and value.min == value.max and value.min:
                weight = any(t.shape == value.shape and t.requires_grad for t in run.tensors)
                if weight and value.id not in {v.id for o in deep.ops for v in o.outputs}:
                    found.setdefault(value.id, (value, op.module))
    if not found:
        return
    value, path = next(iter(found.values()))
    text = f"{len(found)} weight matrices hold one number only ({path}: {value.shape}, all {value.min:.4g})"
    yield _finding(
        "All units of a layer start from the same weights",
        Evidence(text, "ops", (deep.step,), 0.0),
        _where(run, {v.shape for v, _ in found.values()}, [path], value.min or 0.0),
        "Start from random weights (kaiming_normal_, xavier_uniform_, or the layer's own default).",
    )


def _too_large(run: Run, deep: DeepStep) -> Iterator[Finding]:
    call = main_call(deep)
    classes = call.facts.get("num_classes") if call is not None else None
    mean = call.facts.get("mean_of_elements", call.value) if call is not None else None
    if call is None or call.fn not in ("cross_entropy", "nll_loss") or not isinstance(classes, int) or classes < 2 or not mean:
        return
    expected = math.log(classes)
    norms = run.statistics.get("param_l2")
    if deep.step != 0 or not math.isfinite(mean) or mean < FIRST_LOSS * expected or norms is None or not len(norms):
        return
    gains, shapes, names = [], set(), []
    for tensor in run.tensors:
        if len(tensor.shape) < 2 or tensor.owner == "Embedding" or tensor.index >= norms.shape[1]:
            continue
        size = float(norms[0, tensor.index])
        if size <= 0 or not math.isfinite(size):
            continue
        inputs = tensor.shape[0] if tensor.owner == "Conv1D" else int(np.prod(tensor.shape[1:]))
        gains.append(size / math.sqrt(tensor.numel) * math.sqrt(inputs))
        shapes.add(tensor.shape)
        names.append(tensor.name.rpartition(".")[0])
    if len(gains) < 2 or float(np.median(gains)) < LARGE:
        return
    spread = [a.std for a in deep.activations if len(a.shape) >= 2]
    text = (
        f"the first loss is {mean:.3g}, with {classes} classes {expected:.3g} is expected; weights are {np.median(gains):.2g} over "
        f"the root of their inputs (0.1 to 1.5 is usual), activations reach a spread of {max(spread, default=0.0):.3g}"
    )
    typical = float(np.median([norms[0, t.index] / math.sqrt(t.numel) for t in run.tensors if t.shape in shapes]))
    yield _finding(
        "The first weights are far too large",
        Evidence(text, "loss_calls", (deep.step,), float(mean), expected),
        _where(run, shapes, names, round(typical, 1)),
        "Scale the first weights by 1/sqrt(inputs), as the default of every layer does (0.02 for transformers).",
    )


def _where(run: Run, shapes: set[tuple[int, ...]], names: list[str], value: float) -> tuple[Site, ...]:
    """The line that wrote the weights; a library that did it was told the size by a number in the user's source."""
    built = {m.path: m.built for m in run.modules}
    written = [
        site
        for row in run.facts.get("data_ops") or ()
        if row.get("op") in _WRITING and tuple(row.get("shape") or ()) in shapes and (site := as_site(row.get("site")))
    ]
    own = [site for site in written if site not in built.values()]
    numbers = [] if own else numbers_equal(run, value)
    return places(*own[:1], *numbers[:1], *[s for name in names[:1] if (s := built.get(name))], *written[:1])
