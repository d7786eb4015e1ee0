"""Cross-entropy recognised by its gradient, however it was written.

With respect to the scores it is softmax(s) - onehot(target), times a weight: every row sums to zero
and has one negative entry, which is the target. No other common loss has that form, so scores and
targets are found without reading the code. Of two classes any function of a softmax has rows that
sum to zero: there the sizes of the rows decide.
"""

from __future__ import annotations

import torch

from sawbones.observe.deep.losses import Found
from sawbones.observe.deep.trace import RawOp, Ref

_MAX_CANDIDATES = 8
_MAX_ELEMENTS = 1 << 24
_FIT = 0.999
_FEW_ROWS, _MAX_ROWS = 3, 100_000
_VARIED, _SAME = 0.02, 0.1  # spread of the errors, and how much of it the weights may have


def find(region: list[RawOp], root: Ref) -> list[Found]:
    """`region` holds the operators between the model and the root, nearest to the root first."""
    top = root.tensor()
    if top is None or not top.requires_grad:
        return []
    candidates: dict[int, tuple[Ref, RawOp]] = {}
    for op in region:
        for ref in op.inputs:
            if (
                ref.requires_grad
                and not ref.is_parameter
                and len(ref.shape) >= 2
                and ref.id not in candidates
            ):
                candidates[ref.id] = (ref, op)
    # The first tensors of the region are what the model gave out.
    chosen = [
        (ref, op, t)
        for ref, op in list(candidates.values())[::-1]
        if (t := ref.tensor()) is not None
    ]
    chosen = [c for c in chosen if c[2].numel() <= _MAX_ELEMENTS][:_MAX_CANDIDATES]
    if not chosen:
        return []
    grads = torch.autograd.grad(
        top, [t for _, _, t in chosen], torch.ones_like(top), retain_graph=True, allow_unused=True
    )
    fits: list[Found] = []
    for (ref, op, scores), grad in zip(chosen, grads, strict=True):
        if grad is None or not bool(torch.isfinite(grad).all()):
            continue
        for dim in dict.fromkeys((scores.dim() - 1, 1)):
            targets = _targets(scores.detach(), grad, dim)
            if targets is not None:
                fits.append(
                    Found(op, "cross_entropy", ref, _same(region, targets), root, dim, by_hand=True)
                )
                break
    # Of several forms (x, x - max, log_softmax(x)) the last is nearest to what the loss was given.
    probabilities = [f for f in fits if _is_probability(f)]
    return [(probabilities or fits)[0]] if fits else []


def _targets(scores: torch.Tensor, grad: torch.Tensor, dim: int) -> torch.Tensor | None:
    """The class of every row, when the gradient is that of a cross-entropy; -1 in rows without
    gradient.
    """
    classes = scores.shape[dim]
    if classes < 2:
        return None
    rows = scores.movedim(dim, -1).reshape(-1, classes).double()
    g = grad.movedim(dim, -1).reshape(-1, classes).double()
    size = g.abs().sum(-1)
    used = size > 1e-9 * size.max().clamp(min=1e-300)
    if not bool(used.any()) or rows.shape[0] < 2:
        return None
    target = g.argmin(-1)
    direction = rows.softmax(-1)
    direction.scatter_add_(1, target[:, None], -torch.ones_like(direction[:, :1]))
    fit = torch.nn.functional.cosine_similarity(direction, g, dim=-1)
    # A row that is already right has a gradient of rounding errors only.
    clear = used & (direction.abs().sum(-1) > 1e-3)
    if not bool(clear.any()) or float((fit[clear] > _FIT).double().mean()) < 0.95:
        return None
    if classes == 2 and not _sizes_fit(direction[clear], g[clear], target[clear]):
        return None
    return torch.where(used, target, torch.full_like(target, -1))


def _sizes_fit(direction: torch.Tensor, grad: torch.Tensor, target: torch.Tensor) -> bool:
    """Whether rows of a class are as large as their errors, up to one weight; where all errors are
    alike, this can't be told.
    """
    errors, sizes = direction.abs().sum(-1), grad.abs().sum(-1)
    varied = False
    for of_class in (target == label for label in (0, 1)):
        if int(of_class.sum()) < _FEW_ROWS:
            continue
        spread = _spread(errors[of_class])
        if spread > _VARIED:
            varied = True
            if _spread(sizes[of_class] / errors[of_class]) > _SAME * min(spread, 1):
                return False
    return varied


def _spread(values: torch.Tensor) -> float:
    low, high = torch.quantile(values[:_MAX_ROWS], torch.tensor([0.005, 0.995], dtype=values.dtype))
    return float(high / low.clamp(min=1e-300)) - 1


def _same(region: list[RawOp], targets: torch.Tensor) -> Ref | None:
    """The integers of the script that are these targets."""
    known = targets >= 0
    for op in region:
        for ref in (*op.arguments.values(), *op.inputs):
            if ref.requires_grad or not ref.dtype.startswith(("int", "uint")):
                continue
            values = ref.tensor()
            if values is None or values.numel() != targets.numel():
                continue
            if bool((values.reshape(-1) == targets)[known].all()):
                return ref
    return None


def _is_probability(loss: Found) -> bool:
    scores = loss.input.tensor()
    if scores is None or loss.class_dim is None:
        return False
    sums = scores.detach().sum(loss.class_dim)
    return bool((scores >= 0).all()) and bool(((sums - 1).abs() < 2e-3).all())
