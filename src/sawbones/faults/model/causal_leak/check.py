"""A position that sees tokens after itself although it must predict them

## What it sees
On deep steps, losses whose targets are the input tokens one or more positions later (at least 80 %
of the counted targets are), and the influence map: how much outputs at t depend on inputs after t.
Fires when outputs that the loss counts depend on later inputs at all (share over 0.0001; a causal
model has exactly 0), from step 0. Where the map could not be made, the property test decides: later
tokens are exchanged, earlier outputs must not move. Series of numbers are tested in the same way:
where the targets are the model's own input one to three steps later, exactly, later values are
changed and earlier outputs must stay. Recommenders compare outputs with vectors of the next items:
where those are looked up in the input's own table and equal the input one position later, attention
over the input must not reach later positions.

## Why it matters
The model copies the answer instead of learning to predict it. Nothing of that is there when text is
generated.

## Looks like
Training loss falls far under what the data allows, validation (with the same leak) agrees,
generated text is nonsense.

## Example
    y = F.scaled_dot_product_attention(q, k, v)

## Use instead
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)

## Confirm it
The influence map is the proof: a gradient from an output to a later input is there or it is not.

## False alarms
Bidirectional encoders (masked language models, taggers, classifiers) do not predict their own input
ahead and are not looked at. Prefix models see the whole prefix, and the positions that the loss
counts see nothing later. An encoder's tokens are not what a decoder's targets are copied from.
Batch normalisation ties positions together through its statistics and is left out. A latent code
drawn at random from the whole text, as in variational models, tells of it faintly and by design.

## References
The `diagonal` argument of triu and tril, and is_causal left out, are the classic slips of
hand-written GPTs; convolutions need padding on the left only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sawbones.evidence import NothingToJudge, context, exact, finding
from sawbones.evidence.limits import model as limits
from sawbones.schema import Attention, DeepStep, Finding, Fix, Op, Run, Site
from sawbones.stats.loss_calls import as_site
from sawbones.stats.sequences import (
    Prediction,
    attention_ops,
    mask_sites,
    predictions,
    self_attentions,
    shape_of,
)
from sawbones.trace.feeding import model_calls
from sawbones.trace.graph import StepGraph, lookup
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import built_at, kept_at, made_at

NEEDS = ("loss_calls",)
USES = ("made_tensors", "buffers")
EXPLAINS = ("loss.label-shift", "evaluation.overfitting", "model.position-missing")
EXPERIMENT = None
DRAWS = (
    "rand",
    "rand_like",
    "randn",
    "randn_like",
    "bernoulli",
    "bernoulli_",
    "multinomial",
    "normal",
    "normal_",
    "uniform_",
)
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_PRODUCTS = ("matmul", "bmm", "einsum", "baddbmm")
_MIXING = ("flip", "roll", "cumsum", "mean", "max", "softmax", "sum", "reshape", "view")
_TRIANGLES = ("tril", "triu", "tril_", "triu_")

_Cause = tuple[str, tuple[Site, ...], Fix]  # what lets it see ahead, where, the fix


def check(run: Run) -> Iterator[Finding]:
    looked = [(p, share) for p in predictions(run) if (share := _future(p)) is not None]
    if not looked:
        series = [d for d in run.deep if "before" in (d.probes.get("forecast") or {})]
        items = [
            (deep, pair, found)
            for deep in run.deep
            for pair in deep.probes.get("answers") or ()
            if (found := _over_items(deep, pair))
        ]
        if not series and not items:
            raise NothingToJudge("no loss whose targets are the model's own input, later, was seen")
        yield from _forecasts(run, series)
        yield from _next_items(run, items)
        return
    if not all(limits.FUTURE_INFLUENCE.passed_by(share) for _, share in looked):
        return
    first, share = looked[0]
    attention = [(a, op) for a, op in self_attentions(first.deep, first.source) if _looks_ahead(a)]
    faint = limits.FAINT_FUTURE.undercut_by(share)
    if faint and attention and all(_drawn(first, op) for _, op in attention):
        return
    text, where, fix = (
        _masking(run, first.deep, [a for a, _ in attention])
        if attention
        else _without_attention(run, first.deep, first.source)
    )
    yield finding(
        "Outputs see the tokens that they have to predict",
        where,
        (
            exact(
                f"{100 * share:.2g} % of an output's dependence is on tokens after its own "
                f"position; the targets are the inputs {first.ahead} ahead "
                f"({100 * first.copies:.0f} % equal)",
                share,
                within=limits.FUTURE_INFLUENCE.value,
                signal="influence",
                steps=[p.deep.step for p, _ in looked],
            ),
            context(text, signal="attention", steps=(first.deep.step,)),
        ),
        fix,
    )


def _looks_ahead(attention: Attention) -> bool:
    return limits.FUTURE_INFLUENCE.passed_by(attention.future_mass)


def _drawn(prediction: Prediction, attention: Op) -> bool:
    """What this attention found reaches the scores only where it decides a random draw: a latent
    code, as of an autoencoder.
    """
    graph = StepGraph(prediction.deep)
    draws = [op for op in graph.ops if op.name in DRAWS and op.index > attention.index]
    drawn = graph.reached(v for op in draws for v in op.outputs)
    plain = {v.id for v in attention.outputs} - drawn
    for op in graph.ops:
        if op.index > attention.index and any(v.id in plain for v in op.inputs):
            plain |= {v.id for v in op.outputs} - drawn
    asked = graph.at(prediction.call.op)
    return bool(drawn) and asked is not None and not any(v.id in plain for v in asked.inputs)


def _forecasts(run: Run, series: list[DeepStep]) -> Iterator[Finding]:
    """Series of numbers: the targets are the model's own input, later, and its outputs move when
    only later inputs do.
    """
    moved = [float(deep.probes["forecast"]["before"]) for deep in series]
    if not series or not all(map(limits.EARLIER_OUTPUTS_MOVE.passed_by, moved)):
        return
    deep = series[0]
    probe = deep.probes["forecast"]
    attention = [a for a in deep.attention if a.queries == a.keys and _looks_ahead(a)]
    text, where, fix = (
        _masking(run, deep, attention) if attention else _by_operator(run, StepGraph(deep).ops)
    )
    yield finding(
        "Outputs see the values that they have to predict",
        where,
        (
            exact(
                f"the targets are the input {probe['ahead']} ahead; changing the input from "
                f"position {probe['cut']} on moves the outputs before it by up to {moved[0]:.2g} "
                "of their spread",
                moved[0],
                within=limits.EARLIER_OUTPUTS_MOVE.value,
                signal="influence",
                steps=[d.step for d in series],
            ),
            context(text, signal="ops", steps=(deep.step,)),
        ),
        fix,
    )


def _next_items(
    run: Run, looked: list[tuple[DeepStep, Mapping[str, Any], list[Attention]]]
) -> Iterator[Finding]:
    """Outputs that are compared with the vectors of the next items: those items must not be in what
    the outputs attended to.
    """
    if not looked or not all(any(map(_looks_ahead, found)) for _, _, found in looked):
        return
    deep, pair, found = looked[0]
    attention = [a for a in found if _looks_ahead(a)]
    text, where, fix = _masking(run, deep, attention)
    yield finding(
        "Outputs see the items that they have to predict",
        where,
        (
            exact(
                "outputs are compared with vectors of the input's own items one position later "
                f"({100 * pair['copies']:.0f} % equal), and attention over the input reaches those "
                "items",
                max(a.future_mass for a in attention),
                signal="attention",
                steps=[d.step for d, _, _ in looked],
            ),
            context(text, signal="attention", steps=(deep.step,)),
        ),
        fix,
        at_most="likely",  # an item may be shown on purpose
    )


def _over_items(deep: DeepStep, pair: Mapping[str, Any]) -> list[Attention]:
    """Attention of the input over itself, when the answers are only compared with what comes out:
    none of it attends to them.
    """
    answer = lookup(deep, deep.tokens[pair["answer"]])
    if answer is None:
        return []
    reached = StepGraph(deep).reached(answer.outputs)
    if any(v.id in reached for _, op in attention_ops(deep) for v in op.inputs):
        return []
    return [a for a, _ in self_attentions(deep, pair["source"])]


def _future(prediction: Prediction) -> float | None:
    """How much outputs depend on what comes after them; None when nothing could be measured."""
    item = prediction.influence
    if item is not None and item.future is not None and item.dependent:
        return None if item.mixes else item.future
    probe = prediction.deep.probes.get("causality") or {}
    if sum(t.role == "tokens" for t in prediction.deep.tokens) != 1 or "before" not in probe:
        return None
    return float(probe["before"])


def _not_causal(run: Run, attention: Attention) -> list[Site | None]:
    """Where a library's layer was built that says of itself that it is not causal, when all the
    user does is call the model.
    """
    layer = next((m for m in run.modules if m.path == attention.module), None)
    foreign = (
        layer is not None
        and layer.settings.get("is_causal") is False
        and attention.site in model_calls(run)
    )
    return [layer.built] if layer is not None and foreign else []


def _masking(run: Run, deep: DeepStep, attention: list[Attention]) -> _Cause:
    worst = max(attention, key=lambda a: a.future_mass)
    side, diagonal = shape_of(worst)
    mass = (
        f"attention puts {100 * worst.future_mass:.0f} % of its mass on later keys "
        f"({len(attention)} attention layers)"
    )
    used = as_site(worst.mask.get("mask_site"))
    if side == "upper" or (side == "lower" and diagonal):
        made = mask_sites(deep, worst, _TRIANGLES) or made_at(
            run, _TRIANGLES[:2], square=worst.keys
        )
        text = "the mask lets the future through and hides the past, the wrong side of the diagonal"
        fix = "Block the keys above the diagonal (triu with diagonal=1), not those under it."
        if side == "lower" and diagonal:
            text = f"the mask lets through {diagonal} position{'s' * (diagonal > 1)} above"
            text += " the diagonal"
            fix = "Cut the mask at the diagonal: position t may see keys up to t, none after."
        return f"{mass}: {text}", locate(*made, used, worst), Fix(fix)
    if "shape" not in worst.mask:
        return f"{mass}: no mask is given", *_unmasked(run, worst)
    allowed = worst.mask.get("allowed_share")
    if isinstance(allowed, float):
        mass += f": the mask lets {100 * allowed:.0f} % of all pairs through"
    makers = mask_sites(deep, worst)
    # Only where the step itself does not make the mask.
    kept = kept_at(run, worst.keys) if all(site == used for site in makers) else []
    return (
        mass,
        locate(*kept[:1], used, *makers, worst),
        Fix("Make the mask causal as well: position t may see keys up to t, none after."),
    )


def _unmasked(run: Run, attention: Attention) -> tuple[tuple[Site, ...], Fix]:
    site = attention.site
    fix = Fix("Give this attention a causal mask: position t may see keys up to t, none after.")
    if attention.kind == "sdpa" and site is not None and site.code.endswith(")"):
        fix = Fix("Pass is_causal=True.")
    return locate(*_not_causal(run, attention), site, *model_calls(run)[:1]), fix


def _without_attention(run: Run, deep: DeepStep, source: int) -> _Cause:
    """No attention looks ahead: something else moves along time."""
    start = lookup(deep, deep.tokens[source]) if source < len(deep.tokens) else None
    if start is None:
        return _by_operator(run, [])
    graph, token = StepGraph(deep), deep.tokens[source]
    reached = graph.reached(start.outputs)
    on_path = list(graph.after(start.outputs))
    mixing = _square(run, on_path, reached, token.shape[token.time_dim or 0])
    return mixing or _by_operator(run, on_path, start.site)


def _square(run: Run, on_path: Sequence[Op], reached: set[int], length: int) -> _Cause | None:
    """A product with a matrix of (time, time) that is no attention: weights between positions,
    which a triangle should cut.
    """
    for op in on_path:
        if op.name not in _PRODUCTS:
            continue
        for weight in op.inputs:
            if weight.id not in reached and weight.shape[-2:] == (length, length):
                return (
                    f"{op.name} at {op.site} mixes positions by a matrix of {weight.shape} "
                    "with weights above its diagonal",
                    locate(*made_at(run, _TRIANGLES, square=length), op),
                    Fix(
                        "Cut the matrix at the diagonal (tril with diagonal=0): position t "
                        "may read positions up to t."
                    ),
                )
    return None


def _padded_at(
    window: Op, settings: Mapping[str, Any], built: Mapping[str, Site | None]
) -> tuple[Site | None, ...]:
    """A layer that pads by itself is mended where it is built, any other where it is called."""
    padding = settings.get(window.module, {}).get("padding")
    pads = any(padding) if isinstance(padding, (tuple, list)) else bool(padding)
    sites = (window.site, built.get(window.module))
    return sites[::-1] if pads and window.name != "pad" else sites


def _by_operator(run: Run, on_path: Sequence[Op], start: Site | None = None) -> _Cause:
    built = built_at(run)
    settings = {m.path: m.settings for m in run.modules}
    for op in on_path:
        if op.name in _RECURRENT and settings.get(op.module, {}).get("bidirectional"):
            return (
                f"a bidirectional {op.name} reads the sequence from its end as well",
                locate(built.get(op.module), op),
                Fix("Use a recurrent layer of one direction for prediction."),
            )
    for name in ("pad", "conv1d", "conv2d"):
        window = next((o for o in on_path if o.name == name and o.site is not None), None)
        if window is not None:
            return (
                f"{name} at {window.site} lets a window reach past the position that it belongs to",
                locate(*_padded_at(window, settings, built)),
                Fix("Pad on the left only, by dilation * (kernel size - 1)."),
            )
    mixing = next((o.site for o in on_path if o.name in _MIXING), None)
    return (
        "no attention looks ahead; another operator mixes positions",
        locate(mixing, start, *model_calls(run)[:1]),
        Fix("Keep every operator causal along time."),
    )
