"""Attention where it is visible: SDPA, multi-head attention, and a softmax over scores that a
product of two tensors made.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional as F

from sawbones.observe.deep import spelled_softmax as by_hand
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.measure import listed
from sawbones.observe.deep.modules import Paths
from sawbones.observe.deep.roles import Source, triangle
from sawbones.observe.deep.trace import RawOp, Ref
from sawbones.schema import Attention
from sawbones.trace.operators import DOT_PRODUCTS, RESHAPING

_MAX_CALLS = 96
_MAX_ELEMENTS = 1 << 20  # weights recomputed per call
_MAP_SIDE = 24  # groups of queries, and of keys, in the picture
_MAX_MAPS = 12
# Between the product and the softmax: scaling, masking, biases.
_SCORE_OPS = RESHAPING | {
    "div",
    "mul",
    "add",
    "sub",
    "masked_fill",
    "masked_fill_",
    "where",
    "div_",
    "mul_",
    "add_",
    "dropout",
    "clamp",
    "tanh",
    "__setitem__",
    "rsub",
}


def find(graph: OpGraph, sources: list[Source], paths: Paths) -> tuple[Attention, ...]:
    found: list[Attention] = []
    for op in graph.ops:
        if op.silent or len(found) >= _MAX_CALLS:
            continue
        made = None
        if op.name == "scaled_dot_product_attention":
            made = _sdpa(op, sources, paths)
        elif op.name == "multi_head_attention_forward":
            made = _mha(op, sources, paths)
        elif op.name == "softmax" and op.inputs and op.outputs and len(op.inputs[0].shape) >= 3:
            dim = op.args.get("dim")
            made = _softmax(
                op, graph, sources, paths, op.inputs[0], dim if isinstance(dim, int) else -1
            )
        elif op.name in by_hand.ENDS and (spelled := by_hand.softmax(op, graph)) is not None:
            made = _softmax(op, graph, sources, paths, *spelled)
        if made is not None:
            found.append(made if len(found) < _MAX_MAPS else replace(made, map=()))
    return tuple(found)


def _sdpa(op: RawOp, sources: list[Source], paths: Paths) -> Attention | None:
    refs = [op.arguments.get(name) for name in ("query", "key")]
    query, key = (r.tensor() if r is not None else None for r in refs)
    if query is None:
        query = op.inputs[0].tensor() if op.inputs else None
    if query is None or key is None or query.dim() < 3:
        return None
    mask_ref = op.arguments.get("attn_mask")
    mask = mask_ref.tensor() if mask_ref is not None else None
    query, key = query.detach(), key.detach()
    if query.dim() == 3:
        query, key = query[:, None], key[:, None]
        mask = mask[:, None] if mask is not None and mask.dim() == 3 else mask
    batch, heads, queries, dim = query.shape[0], query.shape[1], query.shape[-2], query.shape[-1]
    if key.shape[1] != heads:
        key = key.repeat_interleave(max(heads // key.shape[1], 1), 1)
    b, h = _few(batch, heads, queries, key.shape[-2])
    scale = op.args.get("scale") or 1.0 / math.sqrt(dim)
    scores = query[b][:, :h].float() @ key[b][:, :h].float().transpose(-1, -2)
    raw = scores * scale
    allowed = torch.ones_like(raw, dtype=torch.bool)
    if op.args.get("is_causal"):
        allowed &= torch.ones(raw.shape[-2:], dtype=torch.bool, device=raw.device).tril()
    if mask is not None:
        small = torch.broadcast_to(mask.detach(), (batch, heads, queries, key.shape[-2]))[b][:, :h]
        if small.dtype == torch.bool:
            allowed &= small
        else:
            raw = raw + small.float()
    raw = raw.masked_fill(~allowed, -math.inf)
    facts = _mask_facts(mask, bool(op.args.get("is_causal")), "keep")
    return _summary(
        op,
        paths,
        "sdpa",
        raw.softmax(-1),
        raw,
        heads,
        dim,
        b,
        sources,
        facts,
        float((scores * scale).std()),
        float((scores / math.sqrt(dim)).std()),
    )


def _mha(op: RawOp, sources: list[Source], paths: Paths) -> Attention | None:
    query_ref, key_ref = op.arguments.get("query"), op.arguments.get("key")
    weight_ref = op.arguments.get("in_proj_weight")
    query = query_ref.tensor() if query_ref is not None else None
    key = key_ref.tensor() if key_ref is not None else None
    heads = op.args.get("num_heads")
    if query is None or key is None or not isinstance(heads, int):
        return None
    query, key = query.detach(), key.detach()
    if query.dim() == 2:
        query, key = query[:, None], key[:, None]
    length, batch, width = query.shape  # always (time, batch, features) in here
    dim = width // heads
    weight = weight_ref.tensor() if weight_ref is not None else None
    if weight is not None:
        wq, wk = weight.detach()[:width], weight.detach()[width : 2 * width]
    else:
        projections = [op.arguments.get(name) for name in ("q_proj_weight", "k_proj_weight")]
        tensors = [r.tensor() if r is not None else None for r in projections]
        if tensors[0] is None or tensors[1] is None:
            return None
        wq, wk = tensors[0].detach(), tensors[1].detach()
    bias_ref = op.arguments.get("in_proj_bias")
    bias = bias_ref.tensor() if bias_ref is not None else None
    bq, bk = (
        (bias.detach()[:width].float(), bias.detach()[width : 2 * width].float())
        if bias is not None
        else (None, None)
    )
    b, h = _few(batch, heads, length, key.shape[0])
    q = (
        F.linear(query[:, b].float(), wq.float(), bq)
        .reshape(length, -1, heads, dim)
        .permute(1, 2, 0, 3)[:, :h]
    )
    k = (
        F.linear(key[:, b].float(), wk.float(), bk)
        .reshape(key.shape[0], -1, heads, dim)
        .permute(1, 2, 0, 3)[:, :h]
    )
    scores = q @ k.transpose(-1, -2) / math.sqrt(dim)
    raw, facts = _apply_mha_masks(op, scores, b, h, batch, heads)
    return _summary(
        op,
        paths,
        "mha",
        raw.softmax(-1),
        raw,
        heads,
        dim,
        b,
        sources,
        facts,
        float(scores.std()),
        float(scores.std()),
    )


def _apply_mha_masks(
    op: RawOp, scores: torch.Tensor, b: slice, h: int, batch: int, heads: int
) -> tuple[torch.Tensor, dict[str, Any]]:
    raw = scores
    refs = {name: op.arguments.get(name) for name in ("attn_mask", "key_padding_mask")}
    masks = {name: ref.tensor() for name, ref in refs.items() if ref is not None}
    attn, keys = masks.get("attn_mask"), masks.get("key_padding_mask")
    facts = _mask_facts(attn, bool(op.args.get("is_causal")) and attn is None, "drop")
    if attn is not None:
        attn = attn.detach()
        small = (
            attn.reshape(batch, heads, *attn.shape[-2:])[b][:, :h]
            if attn.dim() == 3 and attn.shape[0] == batch * heads
            else attn
        )
        raw = (
            raw.masked_fill(small, -math.inf) if small.dtype == torch.bool else raw + small.float()
        )
    elif op.args.get("is_causal"):
        raw = raw.masked_fill(
            ~torch.ones(raw.shape[-2:], dtype=torch.bool, device=raw.device).tril(), -math.inf
        )
    if keys is not None:
        keys = keys.detach().reshape(batch, -1) if keys.dim() == 2 else keys.detach()[None]
        small = keys[b][:, None, None, :]
        raw = (
            raw.masked_fill(small, -math.inf) if small.dtype == torch.bool else raw + small.float()
        )
        facts["key_padding"] = {
            "shape": tuple(keys.shape),
            "dtype": str(keys.dtype).removeprefix("torch."),
        }
    return raw, facts


def _softmax(
    op: RawOp, graph: OpGraph, sources: list[Source], paths: Paths, given: Ref, dim: int
) -> Attention | None:
    scores, weights = given.tensor(), op.outputs[0].tensor()
    product, mask_ops, scaled_since = _product_behind(graph, given, op.index)
    if product is None or scores is None or weights is None or not product.outputs:
        return None
    scores, weights = scores.detach(), weights.detach()
    if scores.dim() == 3:
        scores, weights = scores[:, None], weights[:, None]
    if scores.dim() != 4:
        return None
    learned = any(r.is_parameter for r in product.inputs)
    if learned or product.name == "linear":
        return None  # a classifier's softmax over (batch, time, classes), not attention
    b, h = _few(*scores.shape)
    axis = dim % len(given.shape)
    facts: dict[str, Any] = {
        "axis_is_keys": axis == len(given.shape) - 1,
        "masks": len(mask_ops),
    }
    if op.name != "softmax":
        facts["op"] = op.index
    for mask_op in mask_ops:
        ref = mask_op.arguments.get("mask") or mask_op.arguments.get("condition")
        mask = ref.tensor() if ref is not None else None
        if mask is not None:
            facts |= _mask_facts(mask, False, "keep" if mask_op.name == "where" else "drop")
            facts["fill"] = mask_op.args.get("value", mask_op.args.get("other"))
            facts["mask_site"] = mask_op.site
        elif mask_op.name.startswith("add") and len(mask_op.inputs) > 1:
            added = mask_op.inputs[1].tensor()
            if added is not None and not added.requires_grad and added.dim() >= 2:
                facts |= _mask_facts(added.detach(), False, "additive")
                facts["mask_site"] = mask_op.site
    width = _head_dim(product)
    spread, expected = _score_spread(graph, product, width, mask_ops, given)
    if spread is not None and mask_ops:
        spread *= math.prod(_factor(o) or math.nan for o in scaled_since)
        spread = abs(spread) if math.isfinite(spread) else None
    few = scores[b][:, :h].float()
    return _summary(
        op,
        paths,
        "softmax",
        weights[b][:, :h].float(),
        few,
        scores.shape[1],
        width,
        b,
        sources,
        facts,
        spread,
        expected,
    )


def _product_behind(
    graph: OpGraph, ref: Ref, before: int
) -> tuple[RawOp | None, list[RawOp], list[RawOp]]:
    """The product that made the scores, the operators that masked or shifted them since, and those
    that scaled them after the first of these. Nearest to the softmax first.
    """
    masks: list[RawOp] = []
    scalings: list[RawOp] = []
    since: list[RawOp] = []  # scalings, up to the latest mask that was found
    for _, op in graph.way(ref, before, _SCORE_OPS, _scores):
        if op is None or op.name not in _SCORE_OPS:
            product = op if op is not None and op.name in DOT_PRODUCTS else None
            return product, masks, since
        if op.name.startswith(("masked_fill", "where", "add", "sub", "__setitem__")):
            masks.append(op)
            since = list(scalings)
        elif op.name.rstrip("_") in ("mul", "div"):
            scalings.append(op)
    return None, masks, since


def _scores(op: RawOp) -> Ref | None:
    given = next(iter(op.inputs), None)
    return op.arguments.get("input", given) if op.name == "where" else given


def _head_dim(product: RawOp) -> int:
    operands = [r for r in product.inputs if len(r.shape) >= 3]
    if not operands or not product.outputs:
        return 0
    if product.name == "einsum":
        equation = str(product.args.get("equation", "")).replace(" ", "")
        left, _, right = equation.partition("->")
        first = left.split(",")[0]
        gone = [i for i, letter in enumerate(first) if letter not in right and letter != "."]
        return (
            operands[0].shape[gone[-1]]
            if gone and gone[-1] < len(operands[0].shape)
            else operands[0].shape[-1]
        )
    return operands[0].shape[-1]


def _score_spread(
    graph: OpGraph, product: RawOp, width: int, masks: list[RawOp], given: Ref
) -> tuple[float | None, float | None]:
    """Spread of the scores before the first mask, and what the same product over sqrt(d) would
    have.
    """
    made = product.outputs[0]
    # What the scores went through until the first mask, read off the values: the ratio of the
    # spreads.
    last = masks[-1].inputs[0] if masks and masks[-1].inputs else given
    product_spread, actual = _spread(made), _spread(last)
    if not width or product_spread is None:
        return None, None
    return actual, product_spread / abs(_operand_scale(graph, product)) / math.sqrt(width)


def _spread(ref: Ref) -> float | None:
    """Where a mask was written into the scores themselves, what they were before was noted when
    they were made.
    """
    tensor, noted = ref.tensor(), ref.statistic
    if tensor is not None and math.isfinite(float(tensor.detach().float().sum())):
        return float(tensor.detach().float().std())
    return noted.std if noted is not None and not noted.nonfinite else None


def _operand_scale(graph: OpGraph, product: RawOp) -> float:
    """The factor that queries or keys were multiplied by before their product."""
    factor = 1.0
    for ref in product.inputs[:2]:
        _, op = graph.origin(ref, product.index)
        factor *= (_factor(op) if op is not None else None) or 1.0
    return factor or 1.0


def _factor(op: RawOp) -> float | None:
    """The constant that an operator multiplies by; None where it is none."""
    if op.name not in ("mul", "div", "mul_", "div_") or not op.inputs:
        return None
    number = op.args.get("other")
    if len(op.inputs) == 2 and op.inputs[1].shape == () and op.inputs[1].statistic is not None:
        number = op.inputs[1].statistic.mean
    if not isinstance(number, (int, float)) or not number:
        return None
    return float(number) if op.name.startswith("mul") else 1.0 / number


def _few(batch: int, heads: int, queries: int, keys: int) -> tuple[slice, int]:
    per_head = max(queries * keys, 1)
    h = max(1, min(heads, _MAX_ELEMENTS // per_head))
    b = max(1, min(batch, _MAX_ELEMENTS // (per_head * h), 8 if batch > 8 else batch))
    return slice(0, b), h


def _mask_facts(mask: torch.Tensor | None, is_causal: bool, true_means: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"is_causal": is_causal}
    if mask is None:
        return facts
    mask = mask.detach()
    facts |= {
        "shape": tuple(mask.shape),
        "dtype": str(mask.dtype).removeprefix("torch."),
        "min": float(mask.min()),
        "max": float(mask.max()),
    }
    if mask.is_floating_point():
        allowed = mask > -1e3
        facts["true_means"] = "additive"
    else:
        on = mask.to(torch.bool)
        allowed = on if true_means == "keep" else ~on
        facts["true_means"] = true_means
    facts["allowed_share"] = float(allowed.float().mean())
    facts |= triangle(allowed)
    if allowed.dim() >= 2 and allowed.shape[-2] > 1:
        whole, none = allowed.all(-1), ~allowed.any(-1)
        # Rows of one example that see every key beside rows that see none: what is hidden are
        # queries.
        facts["rows_only"] = bool((whole | none).all()) and bool(
            (whole.any(-1) & none.any(-1)).any()
        )
    return facts


def _summary(
    op: RawOp,
    paths: Paths,
    kind: str,
    weights: torch.Tensor,
    raw: torch.Tensor,
    heads: int,
    dim: int,
    rows: slice,
    sources: list[Source],
    facts: dict[str, Any],
    spread: float | None,
    expected: float | None,
) -> Attention:
    queries, keys = weights.shape[-2:]
    masked = ~torch.isfinite(weights).all(-1) | (raw <= -1e4).all(-1)
    clean = torch.nan_to_num(weights)
    allowed = (raw > -1e4).sum(-1).clamp(min=1).float()
    entropy = -(clean * clean.clamp(min=1e-30).log()).sum(-1)
    known = (allowed > 1) & ~masked
    share = (entropy / allowed.log().clamp(min=1e-6))[known]
    evenness = float(share.mean()) if share.numel() else 0.0
    square = queries == keys
    future = float(clean.triu(1).sum(-1).mean()) if square else 0.0
    diagonal = float(clean.diagonal(dim1=-2, dim2=-1).mean()) if square else 0.0
    return Attention(
        op.site,
        paths.of(op.module),
        kind,
        heads,
        queries,
        keys,
        dim,
        evenness,
        future,
        diagonal,
        _pad_mass(clean, rows, sources),
        int(masked.sum()),
        spread,
        expected,
        facts,
        _picture(clean),
    )


def _picture(weights: torch.Tensor) -> tuple[tuple[float, ...], ...]:
    """The mean over examples and heads; neighbouring keys are added up, queries averaged."""
    mean_QK = weights.mean(dim=(0, 1))
    queries, keys = (_groups(size, mean_QK) for size in mean_QK.shape)
    pooled = (queries / queries.sum(dim=1, keepdim=True)) @ mean_QK @ keys.T
    return tuple(tuple(round(v, 4) for v in row) for row in listed(pooled))


def _groups(size: int, like: torch.Tensor) -> torch.Tensor:
    """1 where a position belongs to a group; the larger groups come first."""
    groups = min(size, _MAP_SIDE)
    each, larger = divmod(size, groups)
    sizes = [each + (i < larger) for i in range(groups)]
    rows = [torch.full((n,), i, device=like.device) for i, n in enumerate(sizes)]
    return (torch.arange(groups, device=like.device)[:, None] == torch.cat(rows)).to(like.dtype)


def _pad_mass(weights: torch.Tensor, rows: slice, sources: list[Source]) -> float | None:
    """Mass of real queries on padded keys, for the token input that has as many positions as there
    are keys.
    """
    for source in sources:
        padding = source.padding
        if (
            padding is None
            or padding.shape[1] != weights.shape[-1]
            or padding.shape[0] < weights.shape[0]
        ):
            continue
        keys = padding[rows].to(weights.device)
        mass = (weights * keys[:, None, None, :]).sum(-1)
        if padding.shape[1] == weights.shape[-2]:
            real = (~keys)[:, None, :].expand_as(mass)
            return float(mass[real].mean()) if bool(real.any()) else None
        return float(mass.mean())
    return None
