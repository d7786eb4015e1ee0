"""What met at one operator of an evaluation: ranges, shapes, targets, and how much of it is padding."""

from __future__ import annotations

from typing import Any

import torch

MAX_CLASSES = 64
MAX_ELEMENTS = 1 << 18
MAX_HITS = 200  # evaluations, the latest
_DIFFERS = frozenset({"sub", "rsub", "l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss"})

# where predictions meet what was asked for
MEETS = (
    _DIFFERS
    | {"eq", "ne", "cross_entropy", "nll_loss"}
    | {"binary_cross_entropy", "binary_cross_entropy_with_logits"}
)
# where a yes or no meets another one: hits, or a part of the rows
MAY_MEET = frozenset({"logical_and", "and_"})


def note_values(
    node: dict[str, Any], given: list[torch.Tensor], outputs: list[torch.Tensor]
) -> None:
    name = node["op"]
    for summary, tensor in zip(node["given"], given, strict=False):
        _widen(summary, tensor)
    if outputs:
        _widen(node["result"], outputs[-1] if name in ("max", "topk", "sort") else outputs[0])
    if len(given) < 2:
        return
    first, second = given[:2]
    is_pair = len(given) == 2
    if name in ("gather", "take_along_dim") and is_pair and second.dim() == first.dim():
        wanted = second.squeeze(-1) if second.shape[-1] == 1 else second
        _compare(node, wanted, wanted)
    if name in _DIFFERS:
        _compare_reals(node, first, second)
    if name == "eq" and is_pair:
        _compare(node, first, second)
        _count_targets(node, first if node["roles"][0] != "output" else second)


def note_hits(node: dict[str, Any], step: int, equal: torch.Tensor, target: torch.Tensor) -> None:
    """Of each evaluation: how many answers were right, and of how many."""
    if target.device.type != "cpu" or target.is_floating_point() or equal.numel() > MAX_ELEMENTS:
        return
    seen = node.setdefault("hits", [])
    if not seen or seen[-1][0] != step:
        seen.append([step, 0, 0])
        del seen[:-MAX_HITS]
    seen[-1][1] += int(equal.sum())
    seen[-1][2] += equal.numel()


def _widen(summary: dict[str, Any], tensor: torch.Tensor) -> None:
    """The range of everything that has come by here."""
    shape = list(tensor.shape)
    shapes = summary.setdefault("shapes", [])
    if shape not in shapes and len(shapes) < 6:
        shapes.append(shape)
    summary["dtype"] = str(tensor.dtype).removeprefix("torch.")
    if tensor.device.type != "cpu" or tensor.is_complex() or not 0 < tensor.numel() <= MAX_ELEMENTS:
        return
    plain = tensor.detach()
    low, high = float(plain.min()), float(plain.max())
    summary["min"], summary["max"] = (
        min(summary.get("min", low), low),
        max(summary.get("max", high), high),
    )
    number = summary["num"] = summary.get("num", 0) + plain.numel()
    mean = float(plain.double().mean())
    summary["mean"] = (
        summary.get("mean", mean) + (mean - summary.get("mean", mean)) * plain.numel() / number
    )


def _compare(node: dict[str, Any], a: torch.Tensor, b: torch.Tensor) -> None:
    """How much of a comparison lies on padding: -100, or the one value that fills the ends of
    rows.
    """
    if (
        a.device.type != "cpu"
        or a.shape != b.shape
        or a.dim() != 2
        or a.shape[1] < 2
        or a.numel() > MAX_ELEMENTS
    ):
        return
    if b.is_floating_point() or a.is_floating_point():
        return
    roles = node["roles"]
    target, predicted = (b, a) if roles[1] != "output" or roles[0] == "output" else (a, b)
    pads = target == -100
    value = -100
    if not bool(pads.any()):
        last = target[:, -1]
        value = int(last.mode().values)
        same = (target == value).flip(1).long().cumprod(1).flip(1).bool()
        pads = same & (same.sum(1, keepdim=True) >= 2)
    equal = predicted == target
    seen = node.setdefault(
        "padding",
        {"value": value, "positions": 0, "padded": 0, "equal": 0, "equal_padded": 0, "rows": {}},
    )
    if seen["value"] != value:
        return
    seen["positions"] += target.numel()
    seen["padded"] += int(pads.sum())
    seen["equal"] += int(equal.sum())
    seen["equal_padded"] += int((equal & pads).sum())
    for length in pads.sum(1).tolist():
        seen["rows"][str(length)] = seen["rows"].get(str(length), 0) + 1


def _compare_reals(node: dict[str, Any], a: torch.Tensor, b: torch.Tensor) -> None:
    """How much of a difference lies where both are one and the same number up to the end of the
    row: blanked out on either side.

    Real-valued predictions hit a target exactly nowhere else. What is equal inside of rows is
    counted beside it.
    """
    if (
        a.device.type != "cpu"
        or a.shape != b.shape
        or not 2 <= a.dim() <= 3
        or a.shape[1] < 2
        or a.numel() > MAX_ELEMENTS
    ):
        return
    if not (a.is_floating_point() and b.is_floating_point()):
        return
    last = b.detach()[:, -1:]
    equal = (a.detach() == b.detach()) & (b.detach() == last)
    if equal.dim() == 3:
        equal = equal.all(-1)
    ends = equal.flip(1).long().cumprod(1).flip(1).bool()
    seen = node.setdefault(
        "blanks",
        {"positions": 0, "padded": 0, "equal_inside": 0, "full_rows": 0, "batches": 0, "rows": {}},
    )
    seen["positions"] += ends.numel()
    seen["padded"] += int(ends.sum())
    seen["equal_inside"] += int((equal & ~ends).sum())
    seen["full_rows"] += int(bool((~ends.any(1)).any()))
    seen["batches"] += 1
    for length in ends.sum(1).tolist():
        seen["rows"][str(length)] = seen["rows"].get(str(length), 0) + 1


def _count_targets(node: dict[str, Any], target: torch.Tensor) -> None:
    if (
        target.device.type != "cpu"
        or target.dim() == 0
        or target.numel() != max(target.shape)
        or target.is_floating_point()
        or target.numel() > MAX_ELEMENTS
    ):
        return
    values, counts = target.unique(return_counts=True)
    if len(values) <= MAX_CLASSES:
        seen = node.setdefault("target_counts", {})
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            seen[str(int(value))] = seen.get(str(int(value)), 0) + count
