"""What a model is called with and what it answers: tensors in nested tuples, lists and dicts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

DEEPEST = 3


def tensors_in(value: Any, depth: int = 0) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)) and depth < DEEPEST:
        for item in value:
            yield from tensors_in(item, depth + 1)
    elif isinstance(value, Mapping) and depth < DEEPEST:
        for item in value.values():
            yield from tensors_in(item, depth + 1)


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same with every tensor changed. Only plain tuples, lists and dicts are looked into."""
    if isinstance(value, Tensor):
        return change(value)
    if type(value) in (tuple, list):
        return type(value)(mapped(v, change) for v in value)
    return {k: mapped(v, change) for k, v in value.items()} if type(value) is dict else value


def replaced(value: Any, old: Tensor, new: Tensor) -> Any:
    return mapped(value, lambda tensor: new if tensor is old else tensor)


def as_it_was(model: nn.Module) -> nn.Module:
    """A copy for one call, which shares the parameters: what a model keeps from one call to the
    next, a hidden state for example, is the same at each.
    """
    return copy.deepcopy(model, {id(p): p for p in model.parameters()})


def answer_of(result: Any, fewest_dims: int = 0) -> Tensor | None:
    """The largest float tensor of what a model returned."""
    made = tensors_in(getattr(result, "logits", result))
    floats = [t for t in made if t.is_floating_point() and t.dim() >= fewest_dims]
    return max(floats, key=lambda t: t.numel()).detach() if floats else None


def other_values(given: Tensor, padding: Tensor | None = None, num_ids: int = 0) -> Tensor:
    """Other valid input in the same places, padding left alone: the next id that occurs in it, or
    numbers moved by more than they spread. `num_ids`: how many ids there are, where it is known.
    """
    if given.is_floating_point():
        spread = given.std() if given.numel() > 1 else given.new_tensor(1.0)
        return given + spread + 1.0
    seen = (given if padding is None else given[~padding]).unique()
    if seen.numel() >= 2:
        place = torch.searchsorted(seen, given.contiguous()).clamp(max=seen.numel() - 1)
        other = seen[(place + 1) % seen.numel()]
    elif num_ids:
        other = (given + 1) % max(num_ids, 2)
    else:
        raise ValueError(
            f"the input holds one id only ({int(given.flatten()[0])}): there is nothing to change "
            "it to"
        )
    return other if padding is None else torch.where(padding, given, other)


def one_example(value: Any, example: int, given: Tensor, columns: Tensor) -> Any:
    """One example alone, with some of its positions, of everything that has the sizes of `given`,
    which is (batch, time, ...). Sizes say which dimension is which.
    """
    batch, length = given.shape[:2]

    def cut(tensor: Tensor) -> Tensor:
        if tensor is given or batch == length:
            along_batch = 0 if tensor.dim() and tensor.shape[0] == batch else None
            along_time = [1] if tensor.shape[:2] == given.shape[:2] else []
        else:
            along_batch = next((d for d, n in enumerate(tensor.shape[:2]) if n == batch), None)
            along_time = [d for d, n in enumerate(tensor.shape[:4]) if n == length]
        for dim in along_time:
            tensor = tensor.index_select(dim, columns.to(tensor.device))
        return tensor if along_batch is None else tensor.narrow(along_batch, example, 1)

    return mapped(value, cut)
