"""Readings of sequence models: what is predicted from what, and which attention does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sawbones.schema import Attention, DeepStep, Influence, LossCall, Op, Run, Site
from sawbones.schema.loss import LossFacts
from sawbones.stats.loss_calls import as_site
from sawbones.trace.graph import StepGraph, lookup

# share of the targets that must be input tokens for the loss to count as prediction of the input
# itself
COPIES = 0.8
MASKING = ("masked_fill", "masked_fill_", "where", "add", "add_", "sub", "__setitem__")
ATTENDING = {
    "sdpa": "scaled_dot_product_attention",
    "mha": "multi_head_attention_forward",
    "softmax": "softmax",
}


@dataclass(frozen=True)
class Prediction:
    """A loss whose targets are one of the inputs, `ahead` positions later."""

    deep: DeepStep
    call: LossCall
    source: int
    ahead: int
    copies: float

    @property
    def influence(self) -> Influence | None:
        return next(
            (i for i in self.deep.influence if i.source == f"embedding:{self.source}"), None
        )


def main_call(deep: DeepStep) -> LossCall | None:
    return next((call for call in deep.losses if call.facts.main), None)


def predictions(run: Run) -> list[Prediction]:
    """Deep steps on which the model predicts its own input ahead of time."""
    found = []
    for deep in run.deep:
        call = main_call(deep)
        facts = call.facts if call is not None else LossFacts()
        if call is None or facts.copied_at is None or facts.copied_from is None:
            continue
        share = facts.shift.get(facts.copied_at, {}).get("copies", 0.0)
        if facts.copied_at >= 1 and share >= COPIES:
            found.append(Prediction(deep, call, facts.copied_from, facts.copied_at, share))
    return found


def attention_ops(deep: DeepStep) -> list[tuple[Attention, Op]]:
    """Every attention with its operator: both lists are in the order of the step."""
    found, start = [], 0
    ops = [op for op in deep.ops if not op.args.get("no_grad")]
    for attention in deep.attention:
        name = ATTENDING[attention.kind]
        for place in range(start, len(ops)):
            op = ops[place]
            spelled = attention.mask.get(
                "op"
            )  # a softmax that is written out ends in another operator
            fits = op.name == name if spelled is None else op.index == spelled
            if fits and op.site == attention.site and op.module == attention.module:
                found.append((attention, op))
                start = place + 1
                break
    return found


def keys_of(graph: StepGraph, attention: Attention, op: Op) -> int | None:
    """The tensor that the keys come from; for a softmax over scores, the second operand of the
    product.
    """
    if attention.kind != "softmax":
        return op.inputs[1].id if len(op.inputs) > 1 else None
    for behind in graph.behind(op.inputs[0], op.index, 24):
        if behind.name in ("matmul", "bmm", "einsum", "baddbmm") and len(behind.inputs) >= 2:
            return behind.inputs[-1].id
    return None


def self_attentions(deep: DeepStep, source: int) -> list[tuple[Attention, Op]]:
    """Attention of one token input over itself: as many keys as queries, and keys made from that
    input.
    """
    if source >= len(deep.tokens):
        return []
    start = lookup(deep, deep.tokens[source])
    if start is None:
        return []
    graph = StepGraph(deep)
    reached = graph.reached(start.outputs)
    return [
        (attention, op)
        for attention, op in attention_ops(deep)
        if attention.queries == attention.keys and keys_of(graph, attention, op) in reached
    ]


def mask_sites(deep: DeepStep, attention: Attention, names: tuple[str, ...] = ()) -> list[Site]:
    """Lines that made the mask an attention used, nearest to its making first; then the line that
    used it.
    """
    used = as_site(attention.mask.get("mask_site"))
    found: list[Site] = []
    for mask in deep.masks:
        for use in mask.get("uses") or ():
            here = as_site(use.get("site"))
            made = as_site(use.get("made_at"))
            mine = here is not None and here in (used, attention.site)
            if mine and made is not None and (not names or use.get("made_by") in names):
                found.append(made)
    return list(dict.fromkeys(found))


def shape_of(attention: Attention) -> tuple[str | None, int | None]:
    """(side, diagonal) of the part that a mask lets through, when it is a triangle."""
    facts: Any = attention.mask
    if facts.get("is_causal"):
        return "lower", 0
    return facts.get("triangle"), facts.get("diagonal")


def mask_makers(deep: DeepStep, attention: Attention, op: Op) -> list[Site]:
    """Lines of the step that made what masks the scores: the values beside them that carry no
    gradient.
    """
    graph = StepGraph(deep)
    users = [op]
    if attention.kind == "softmax":
        users = [
            o
            for o in graph.behind(op.inputs[0], op.index, 12)
            if o.name in MASKING and o.site is not None
        ]
    found: dict[Site, None] = {}
    for user in users:
        for value in user.inputs[1:]:
            if not value.requires_grad:
                made = graph.origin(value, user.index)[1] or graph.maker(value, user.index)
                if made is not None and made.site is not None:
                    found[made.site] = None
    return list(found)
