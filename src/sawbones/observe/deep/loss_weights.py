"""How much each target really counts: from the gradient of the backward's root with respect to the
scores.

For a known loss the gradient of one target has a known direction (softmax(s) - onehot for
cross-entropy); the length along it is the weight of that target, whatever code masked, weighted,
averaged or summed. Padding that is ignored has weight 0. Labels that were smoothed by hand turn the
direction: by how much is solved for, so that what is left is the weight.
"""

from __future__ import annotations

import torch

from sawbones.observe.deep import blanks
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.losses import Found, class_rows
from sawbones.observe.deep.measure import listed
from sawbones.observe.deep.roles import Source
from sawbones.observe.deep.shift import Frame
from sawbones.schema.loss import BlankTargets, PaddedTargets, TargetWeights

_MAX_ELEMENTS = 1 << 26
_MAX_CLASSES = 64
_EXACT = 1.0 - 1e-6  # a fit that is off by no more than float32 rounding
_ALIKE = 1e-6  # of two directions that cannot be distinguished in float32, squared


def measure(
    loss: Found, frame: Frame | None, sources: list[Source], root: torch.Tensor, graph: OpGraph
) -> None:
    scores = loss.input.tensor()
    target = loss.target.tensor() if loss.target is not None else None
    if (
        scores is None
        or target is None
        or not scores.requires_grad
        or scores.numel() > _MAX_ELEMENTS
    ):
        return
    (gradient,) = torch.autograd.grad(
        root, [scores], torch.ones_like(root), retain_graph=True, allow_unused=True
    )
    if gradient is None or not bool(torch.isfinite(gradient).all()):
        return
    found = _weights(loss, scores.detach().float(), target.detach(), gradient.float())
    if found is None:
        return
    weights, fit = found
    size = weights.abs()
    top = float(size.max()) if size.numel() else 0.0
    used = size > 1e-6 * top if top > 0 else torch.zeros_like(size, dtype=torch.bool)
    flat = target.detach().reshape(-1)
    binary = loss.fn.startswith("binary") and loss.facts.get("target_is_whole")
    classes = (loss.facts.get("target_is_index") or binary) and flat.numel() == weights.numel()
    loss.facts["weights"] = TargetWeights(
        int(weights.numel()),
        int(used.sum()),
        float(weights.double().sum()),
        fit,
        float(weights.min()),
        float(weights.max()),
        float(root.detach().double().sum()),
        _by_class(flat, weights, used) if classes else {},
    )
    if frame is not None and weights.numel() == frame.shape[0] * frame.shape[1]:
        _padding(loss, frame, sources, flat, weights, used)
    if "padding" not in loss.facts:
        _blank(loss, blanks.positions(graph), target.detach(), weights.abs())


def _weights(
    loss: Found, scores: torch.Tensor, target: torch.Tensor, gradient: torch.Tensor
) -> tuple[torch.Tensor, float] | None:
    if loss.class_dim is not None and not target.is_floating_point():
        rows, grads = class_rows(loss, scores), class_rows(loss, gradient)
        flat = target.reshape(-1).long()
        if rows.shape[0] != flat.numel():
            return None
        inside = (flat >= 0) & (flat < rows.shape[1])
        guess = torch.zeros_like(rows) if loss.fn == "nll_loss" else rows.softmax(-1)
        right = torch.zeros_like(rows).scatter_(1, torch.where(inside, flat, 0)[:, None], 1.0)
        smoothing = float(loss.facts.get("smoothing") or 0.0)
        plain = _along(guess - _smoothed(right, smoothing), grads, inside)
        if not loss.by_hand or loss.fn == "nll_loss" or plain[1] > _EXACT:
            return plain
        spread = _smoothing_in(guess, right, grads, inside)
        smoothed = _along(guess - _smoothed(right, spread), grads, inside)
        return smoothed if smoothed[1] > _EXACT else plain
    if scores.shape != target.shape:
        return None
    goal = target.to(scores.dtype)
    if loss.fn == "mse_loss":
        direction = 2.0 * (scores - goal)
    elif loss.fn in ("huber_loss", "smooth_l1_loss"):
        direction = (scores - goal).clamp(-1.0, 1.0)
    elif loss.fn == "l1_loss":
        direction = torch.sign(scores - goal)
    elif loss.fn == "binary_cross_entropy_with_logits":
        direction = scores.sigmoid() - goal
    elif loss.fn == "binary_cross_entropy":
        direction = (scores - goal) / (scores * (1.0 - scores)).clamp(min=1e-12)
    else:
        return None
    return _along(direction.reshape(-1, 1), gradient.reshape(-1, 1), None)


def _smoothed(right: torch.Tensor, smoothing: float) -> torch.Tensor:
    return (1.0 - smoothing) * right + smoothing / right.shape[1]


def _smoothing_in(
    guess: torch.Tensor, right: torch.Tensor, gradient: torch.Tensor, inside: torch.Tensor
) -> float:
    """How far labels were smoothed by hand: a row's gradient is w (guess - right) + w s (right -
    1/C), whatever its weight w; s is the same for all rows.
    """
    one, two = (guess - right).double(), (right - 1.0 / right.shape[1]).double()
    of = gradient.double()
    a, b, c = (one * one).sum(-1), (one * two).sum(-1), (two * two).sum(-1)
    x, y = (one * of).sum(-1), (two * of).sum(-1)
    apart = a * c - b * b
    length, share = c * x - b * y, a * y - b * x
    known = inside & (apart > _ALIKE * a * c) & (length != 0)
    return float((share[known] / length[known]).median()) if bool(known.any()) else 0.0


def _along(
    direction: torch.Tensor, gradient: torch.Tensor, inside: torch.Tensor | None
) -> tuple[torch.Tensor, float]:
    norm = (direction * direction).sum(-1)
    weights = (direction * gradient).sum(-1) / norm.clamp(min=1e-20)
    weights = torch.where(norm > 1e-12, weights, torch.zeros_like(weights))
    if inside is not None:
        weights = torch.where(inside, weights, torch.zeros_like(weights))
    rest = gradient - weights[:, None] * direction
    total = float((gradient * gradient).sum())
    return weights, 1.0 - float((rest * rest).sum()) / total if total > 0 else 0.0


def _by_class(
    flat: torch.Tensor, weights: torch.Tensor, used: torch.Tensor
) -> dict[int, tuple[float, float, float]]:
    """class -> targets, mean weight of those that count, targets that count"""
    values, counts = torch.unique(flat, return_counts=True)
    found: dict[int, tuple[float, float, float]] = {}
    for i in listed(torch.argsort(counts, descending=True)[:_MAX_CLASSES]):
        mine = flat == values[i]
        counting = mine & used
        number = int(counting.sum())
        found[int(values[i])] = (
            float(counts[i]),
            float(weights[counting].mean()) if number else 0.0,
            float(number),
        )
    return found


def _padding(
    loss: Found,
    frame: Frame,
    sources: list[Source],
    flat: torch.Tensor,
    weights: torch.Tensor,
    used: torch.Tensor,
) -> None:
    goal, weight, counts = (frame.by_time(t.cpu()) for t in (flat, weights, used))
    length = goal.shape[1]
    classes = loss.facts.get("num_classes")
    tokens = [s for s in sources if s.role == "tokens" and s.index.dim() == 2]
    # The input whose shifted copy the targets are knows best; then one of the same vocabulary; then
    # any of the same form.
    for source in sorted(
        tokens, key=lambda s: (s is not frame.source, s.num_embeddings != classes)
    ):
        time_dim = frame.source_time_dim if source is frame.source else frame.time_dim
        ids = source.index.t() if time_dim == 0 else source.index
        pad_id = source.pad_id
        if pad_id is None or ids.shape[0] != goal.shape[0] or ids.shape[1] < frame.start + length:
            continue
        # Where the id fills an end, not where it serves as a start token.
        filled = (
            source.padding
            if source.time_dim == time_dim and source.padding is not None
            else torch.eq(ids, pad_id)
        )
        padded: torch.Tensor = filled[:, frame.start : frame.start + length]
        same_vocabulary = source is frame.source or source.num_embeddings == classes
        if source is not frame.source and not same_vocabulary and ids.shape[1] != length:
            continue
        number = int(padded.sum())
        if not number:
            continue
        values = goal[padded]
        common = int(values.mode().values)
        total = float(weight.abs().sum())
        loss.facts["padding"] = PaddedTargets(
            sources.index(source),
            pad_id,
            same_vocabulary,
            number,
            int((padded & counts).sum()),
            float(weight[padded].abs().sum()) / total if total else 0.0,
            common,
            float((values == common).float().mean()),
        )
        return


def _blank(
    loss: Found, blank: list[torch.Tensor], target: torch.Tensor, weights: torch.Tensor
) -> None:
    """The same for inputs of numbers: positions at the ends of rows at which every feature is
    zero.
    """
    for padded in blank:
        flattened = target.dim() == 1 and target.numel() == padded.numel()
        rows = padded.shape if flattened else target.shape[:2]
        if tuple(padded.shape) != tuple(rows) or weights.numel() % padded.numel():
            continue
        padded = padded.to(target.device)
        goal, weight = target.reshape(*rows, -1), weights.reshape(*rows, -1).sum(-1)
        common = goal[padded].reshape(-1).mode().values
        total = float(weight.sum())
        loss.facts["blank"] = BlankTargets(
            int(padded.sum()),
            int((weight[padded] > 1e-6 * float(weight.max())).sum()),
            float(weight[padded].sum()) / total if total else 0.0,
            float(common),
            float((goal[padded] == common).float().mean()),
            float((goal[~padded] == common).float().mean()),
        )
        return
