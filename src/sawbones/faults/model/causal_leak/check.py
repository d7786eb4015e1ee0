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

from sawbones.schema import Attention, DeepStep, Evidence, Finding, Fix, Op, Run, Site
from sawbones.stats.dataflow import Flow, lookup
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.sequences import (
    Prediction,
    attention_ops,
    buffer_sites,
    built_sites,
    calls_of_model,
    mask_sites,
    predictions,
    self_attentions,
    shape_of,
)

NEEDS = ("loss_calls",)
EXPLAINS = ("loss.label-shift", "evaluation.overfitting", "model.position-missing")
EXPERIMENT = None
VISIBLE = 1e-4
FAINT = 0.01
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
MOVED = 1e-3  # of the outputs' spread; rounding of a causal model stays far under it


def check(run: Run) -> Iterator[Finding]:
    looked = [(p, share) for p in predictions(run) if (share := _future(p)) is not None]
    leaking = [(p, share) for p, share in looked if share > VISIBLE]
    if not looked:
        yield from _forecasts(run)
        yield from _next_items(run)
    if not leaking or len(leaking) < len(looked):
        return
    first, share = leaking[0]
    attention = [
        (a, op) for a, op in self_attentions(first.deep, first.source) if a.future_mass > VISIBLE
    ]
    if share < FAINT and attention and all(_drawn(first, op) for _, op in attention):
        return
    text, where, fix = _explain(run, first, attention)
    yield Finding(
        "model.causal-leak",
        "proven",
        0.97,
        "Outputs see the tokens that they have to predict",
        where,
        (
            Evidence(
                f"{100 * share:.2g} % of an output's dependence is on tokens after its own position; the targets are the inputs "
                f"{first.ahead} ahead ({100 * first.copies:.0f} % equal)",
                "influence",
                tuple(p.deep.step for p, _ in leaking),
                share,
                0.0,
            ),
            Evidence(text, "attention", (first.deep.step,)),
        ),
        fix,
    )


def _drawn(prediction: Prediction, attention: Op) -> bool:
    """What this attention found reaches the scores only where it decides a random draw: a latent
    code, as of an autoencoder.
    """
    flow = Flow(prediction.deep)
    drawn = flow.reached(
        [
            v.id
            for op in flow.ops
            if op.name in DRAWS and op.index > attention.index
            for v in op.outputs
        ]
    )
    plain = {v.id for v in attention.outputs} - drawn
    for op in flow.ops:
        if op.index > attention.index and any(v.id in plain for v in op.inputs):
            plain |= {v.id for v in op.outputs} - drawn
    asked = next((op for op in flow.ops if op.index == prediction.call.op), None)
    return bool(drawn) and asked is not None and not any(v.id in plain for v in asked.inputs)


def _forecasts(run: Run) -> Iterator[Finding]:
    """Series of numbers: the targets are the model's own input, later, and its outputs move when
    only later inputs do.
    """
    looked = [
        (deep, probe)
        for deep in run.deep
        if "before" in (probe := deep.probes.get("forecast") or {})
    ]
    leaking = [(deep, float(probe["before"])) for deep, probe in looked if probe["before"] > MOVED]
    if not leaking or len(leaking) < len(looked):
        return
    deep, moved = leaking[0]
    probe = deep.probes["forecast"]
    attention = [a for a in deep.attention if a.queries == a.keys and a.future_mass > VISIBLE]
    if attention:
        text, where, fix = _masking(run, deep, attention)
    else:
        text, where, fix = _by_operator(run, deep, Flow(deep).ops)
    first = Evidence(
        f"the targets are the input {probe['ahead']} ahead; changing the input from position {probe['cut']} on moves the outputs "
        f"before it by up to {moved:.2g} of their spread",
        "influence",
        tuple(d.step for d, _ in leaking),
        moved,
        0.0,
    )
    title = "Outputs see the values that they have to predict"
    yield Finding(
        "model.causal-leak",
        "proven",
        0.96,
        title,
        where,
        (first, Evidence(text, "ops", (deep.step,))),
        fix,
    )


def _next_items(run: Run) -> Iterator[Finding]:
    """Outputs that are compared with the vectors of the next items: those items must not be in what
    the outputs attended to.
    """
    looked = [
        (deep, pair, found)
        for deep in run.deep
        for pair in deep.probes.get("answers") or ()
        if (found := _over_items(deep, pair))
    ]
    leaking = [
        (deep, pair, ahead)
        for deep, pair, found in looked
        if (ahead := [a for a in found if a.future_mass > VISIBLE])
    ]
    if not leaking or len(leaking) < len(looked):
        return
    deep, pair, attention = leaking[0]
    text, where, fix = _masking(run, deep, attention)
    first = Evidence(
        f"outputs are compared with vectors of the input's own items one position later ({100 * pair['copies']:.0f} % equal), and "
        "attention over the input reaches those items",
        "attention",
        tuple(d.step for d, _, _ in leaking),
        max(a.future_mass for a in attention),
        0.0,
    )
    title = "Outputs see the items that they have to predict"
    yield Finding(
        "model.causal-leak",
        "likely",
        0.92,
        title,
        where,
        (first, Evidence(text, "attention", (deep.step,))),
        fix,
    )


def _over_items(deep: DeepStep, pair: Mapping[str, Any]) -> list[Attention]:
    """Attention of the input over itself, when the answers are only compared with what comes out:
    none of it attends to them.
    """
    answer = lookup(deep, deep.tokens[pair["answer"]])
    if answer is None:
        return []
    reached = Flow(deep).reached([v.id for v in answer.outputs])
    if any(v.id in reached for _, op in attention_ops(deep) for v in op.inputs):
        return []
    return [a for a, _ in self_attentions(deep, pair["source"])]


def _future(prediction: Prediction) -> float | None:
    """How much outputs depend on what comes after them; None when nothing could be measured."""
    item = prediction.influence
    if item is not None and item.future is not None and item.dependent:
        return None if item.mixes else item.future
    probe = prediction.deep.probes.get("causality") or {}
    if (
        len(prediction.deep.tokens)
        and sum(t.role == "tokens" for t in prediction.deep.tokens) == 1
        and "before" in probe
    ):
        return float(probe["before"]) if probe["before"] > VISIBLE else 0.0
    return None


def _explain(
    run: Run, prediction: Prediction, attention: list[tuple[Attention, Op]]
) -> tuple[str, tuple[Site, ...], Fix]:
    deep = prediction.deep
    if not attention:
        return _without_attention(run, deep, prediction.source)
    return _masking(run, deep, [a for a, _ in attention])


def _not_causal(run: Run, attention: Attention) -> list[Site | None]:
    """Where a library's layer was built that says of itself that it is not causal, when all the
    user does is call the model.
    """
    layer = next((m for m in run.modules if m.path == attention.module), None)
    foreign = (
        layer is not None
        and layer.settings.get("is_causal") is False
        and attention.site in calls_of_model(run)
    )
    return [layer.built] if layer is not None and foreign else []


def _masking(
    run: Run, deep: DeepStep, attention: list[Attention]
) -> tuple[str, tuple[Site, ...], Fix]:
    worst = max(attention, key=lambda a: a.future_mass)
    side, diagonal = shape_of(worst)
    mass = (
        f"attention puts {100 * worst.future_mass:.0f} % of its mass on later keys "
        f"({len(attention)} attention layers)"
    )
    made = mask_sites(deep, worst, ("tril", "triu", "tril_", "triu_")) or built_sites(
        run, ("tril", "triu"), worst.keys
    )
    used = as_site(worst.mask.get("mask_site"))
    if side == "lower" and diagonal:
        text = (
            f"{mass}: the mask lets through {diagonal} position{'s' * (diagonal > 1)} above "
            "the diagonal"
        )
        return (
            text,
            places(*made, used, worst.site),
            Fix("Cut the mask at the diagonal: position t may see keys up to t, none after."),
        )
    if side == "upper":
        text = (
            f"{mass}: the mask lets the future through and hides the past, the wrong side of "
            "the diagonal"
        )
        return (
            text,
            places(*made, used, worst.site),
            Fix("Block the keys above the diagonal (triu with diagonal=1), not those under it."),
        )
    if "shape" not in worst.mask:
        text = f"{mass}: no mask is given"
        sites = places(*_not_causal(run, worst), worst.site, *calls_of_model(run)[:1])
        if worst.kind == "sdpa" and worst.site is not None and worst.site.code.endswith(")"):
            return (
                text,
                sites,
                Fix(
                    "Pass is_causal=True.",
                    replace=(worst.site.code, worst.site.code[:-1] + ", is_causal=True)"),
                ),
            )
        return (
            text,
            sites,
            Fix("Give this attention a causal mask: position t may see keys up to t, none after."),
        )
    allowed = worst.mask.get("allowed_share")
    text = (
        f"{mass}: the mask lets {100 * allowed:.0f} % of all pairs through"
        if isinstance(allowed, float)
        else mass
    )
    causal = Fix("Make the mask causal as well: position t may see keys up to t, none after.")
    makers = mask_sites(deep, worst)
    kept = (
        buffer_sites(run, worst.keys) if all(site == used for site in makers) else []
    )  # else the step itself makes the mask
    return text, places(*kept[:1], used, *makers, worst.site), causal


def _without_attention(run: Run, deep: DeepStep, source: int) -> tuple[str, tuple[Site, ...], Fix]:
    """No attention looks ahead: something else moves along time."""
    start = lookup(deep, deep.tokens[source]) if source < len(deep.tokens) else None
    flow = Flow(deep)
    reached = flow.reached([v.id for v in start.outputs]) if start is not None else set()
    on_path = [op for op in flow.ops if any(v.id in reached for v in op.inputs)]
    mixing = (
        _square(run, on_path, reached, deep.tokens[source].shape[deep.tokens[source].time_dim or 0])
        if reached
        else None
    )
    if mixing is not None:
        return mixing
    return _by_operator(run, deep, on_path, start.site if start is not None else None)


def _square(
    run: Run, on_path: Sequence[Op], reached: set[int], length: int
) -> tuple[str, tuple[Site, ...], Fix] | None:
    """A product with a matrix of (time, time) that is no attention: weights between positions,
    which a triangle should cut.
    """
    for op in on_path:
        if op.name not in ("matmul", "__matmul__", "__rmatmul__", "bmm", "einsum", "baddbmm"):
            continue
        weights = [
            v
            for v in op.inputs
            if v.id not in reached and len(v.shape) >= 2 and v.shape[-1] == v.shape[-2] == length
        ]
        if weights:
            text = (
                f"{op.name} at {op.site} mixes positions by a matrix of {weights[0].shape} "
                "with weights above its diagonal"
            )
            where = places(*built_sites(run, ("tril", "triu", "tril_", "triu_"), length), op.site)
            return (
                text,
                where,
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


def _by_operator(
    run: Run, deep: DeepStep, on_path: Sequence[Op], start: Site | None = None
) -> tuple[str, tuple[Site, ...], Fix]:
    built = {m.path: m.built for m in run.modules}
    settings = {m.path: m.settings for m in run.modules}
    for op in on_path:
        if op.name in ("lstm", "gru", "rnn_tanh", "rnn_relu") and settings.get(op.module, {}).get(
            "bidirectional"
        ):
            text = f"a bidirectional {op.name} reads the sequence from its end as well"
            return (
                text,
                places(built.get(op.module), op.site),
                Fix("Use a recurrent layer of one direction for prediction."),
            )
    for name in ("pad", "conv1d", "conv2d"):
        window = next((o for o in on_path if o.name == name and o.site is not None), None)
        if window is not None:
            text = (
                f"{name} at {window.site} lets a window reach past the position that it belongs to"
            )
            return (
                text,
                places(*_padded_at(window, settings, built)),
                Fix("Pad on the left only, by dilation * (kernel size - 1)."),
            )
    mixing = next(
        (
            o
            for o in on_path
            if o.name
            in ("flip", "roll", "cumsum", "mean", "max", "softmax", "sum", "reshape", "view")
        ),
        None,
    )
    sites = places(mixing.site if mixing is not None else None, start, *calls_of_model(run)[:1])
    return (
        "no attention looks ahead; another operator mixes positions",
        sites,
        Fix("Keep every operator causal along time."),
    )
