"""Changes of a batch that make it smaller or simpler. Plain JSON, so that a bundle can say what was
done to it.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import torch

from sawbones.capture.substitution import map_tensors
from sawbones.observe.fingerprints import tensors_in

MAX_ELEMENTS = 512  # of one tensor, that are looked at one by one


def apply(value: Any, edits: list[dict[str, Any]]) -> Any:
    for edit in edits:
        value = (
            _rows(value, edit["of"], edit["keep"])
            if edit["edit"] == "rows"
            else map_tensors(value, partial(_changed, edit))
        )
    return value


def _changed(edit: dict[str, Any], path: str, tensor: torch.Tensor) -> torch.Tensor:
    if edit["edit"] == "window":
        return _window(tensor, edit["of"], edit["start"], edit["length"])
    if path not in edit["paths"]:
        return tensor
    return (
        _fill(tensor, edit["with"]) if edit["edit"] == "fill" else _keep(tensor, edit["elements"])
    )


def num_examples(value: Any) -> int:
    """The size of the first dimension that most tensors share."""
    sizes = Counter(t.shape[0] for _, t in tensors_in(value) if t.dim())
    return max(sizes, key=lambda size: (sizes[size], size)) if sizes else 0


def sequence_lengths(value: Any) -> list[int]:
    """Sizes of later dimensions that could be a length: those of integer tensors first, then those
    that several tensors share.
    """
    whole: Counter[int] = Counter()
    shared: Counter[int] = Counter()
    for _, tensor in tensors_in(value):
        for size in set(tensor.shape[1:]):
            if size > 1:
                shared[size] += 1
                if not tensor.is_floating_point():
                    whole[size] += 1
    ordered = [size for size, _ in whole.most_common()] + [size for size, _ in shared.most_common()]
    return list(dict.fromkeys(ordered))[:4]


def groups(value: Any) -> list[list[str]]:
    """Paths of tensors, those that are one and the same tensor together."""
    known: dict[int, list[str]] = {}
    for path, tensor in tensors_in(value):
        known.setdefault(tensor.data_ptr() if tensor.numel() else id(tensor), []).append(path)
    return list(known.values())


def _rows(value: Any, size: int, keep: list[int]) -> Any:
    chosen = {size: keep, **_packed(value, size, keep)}

    def cut(path: str, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.dim() or tensor.shape[0] not in chosen:
            return tensor
        index = torch.tensor(chosen[tensor.shape[0]], dtype=torch.long, device=tensor.device)
        return tensor.detach()[index].requires_grad_(tensor.requires_grad)

    return _cut_lists(map_tensors(value, cut), size, keep)


def _packed(value: Any, size: int, keep: list[int]) -> dict[int, list[int]]:
    """Examples of different lengths laid end to end: tensors as long as the sum of the lengths are
    cut where the examples lie.
    """
    tensors = [t for _, t in tensors_in(value)]
    sizes = {t.shape[0] for t in tensors if t.dim()}
    for lengths in tensors:
        if (
            lengths.dim() != 1
            or lengths.shape[0] != size
            or lengths.is_floating_point()
            or lengths.dtype is torch.bool
        ):
            continue
        total = int(lengths.sum())
        if total in sizes and total != size and bool((lengths >= 0).all()):
            ends = lengths.cumsum(0).tolist()
            return {total: [row for i in keep for row in range(ends[i] - int(lengths[i]), ends[i])]}
    return {}


def _cut_lists(value: Any, size: int, keep: list[int], depth: int = 0) -> Any:
    """Texts and other things that lie beside the tensors, one for each example."""
    if depth > 4:
        return value
    if (
        type(value) is list
        and len(value) == size
        and not any(isinstance(v, (torch.Tensor, list, dict)) for v in value)
    ):
        return [value[i] for i in keep]
    if type(value) in (list, tuple):
        return type(value)(_cut_lists(v, size, keep, depth + 1) for v in value)
    if type(value) is dict:
        return {k: _cut_lists(v, size, keep, depth + 1) for k, v in value.items()}
    return value


def _window(tensor: torch.Tensor, size: int, start: int, length: int) -> torch.Tensor:
    """Also where a tensor is one shorter: targets that were shifted already."""
    plain = tensor.detach()
    for dim in range(1, plain.dim()):
        if plain.shape[dim] == size:
            plain = plain.narrow(dim, start, length)
        elif plain.shape[dim] == size - 1 and size > 2:
            plain = plain.narrow(
                dim,
                start,
                max(min(length, size - 1 - start) - (1 if start + length == size else 0), 1),
            )
    return plain.clone().requires_grad_(tensor.requires_grad)


def _fill(tensor: torch.Tensor, number: float) -> torch.Tensor:
    return torch.full_like(tensor.detach(), number).requires_grad_(tensor.requires_grad)


def _keep(tensor: torch.Tensor, elements: list[int]) -> torch.Tensor:
    flat = torch.zeros_like(tensor.detach()).reshape(-1)
    where = torch.tensor(elements, dtype=torch.long, device=flat.device)
    flat[where] = tensor.detach().reshape(-1)[where]
    return flat.reshape(tensor.shape).requires_grad_(tensor.requires_grad)
