"""How a model is called with a batch, and the same call with some of its input changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sawbones.properties.inputs import answer_of

Forward = Callable[[nn.Module, Any], Any]


def plain_forward(model: nn.Module, batch: Any) -> Any:
    """A dict by keywords, a list or tuple by position, anything else as the one argument."""
    if isinstance(batch, dict):
        return model(**batch)
    if isinstance(batch, (list, tuple)):
        return model(*batch)
    return model(batch)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients, and the random streams as they were; every module gets its own
    mode back.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


class Call:
    """One call of a model. `source` is the tensor that is changed: ids of shape (batch, time)
    first, else the first float one.
    """

    def __init__(
        self, model: nn.Module, batch: Any, forward: Forward | None, source: str | int | None
    ) -> None:
        self.model, self.batch, self.forward = model, batch, forward or plain_forward
        self.key = source if source is not None else _choose(batch)
        self.given = self._read()
        if not isinstance(self.given, Tensor):
            raise TypeError(
                f"source={source!r} is {type(self.given).__name__}: name the tensor of "
                "the batch that may be changed"
            )

    def _read(self) -> Any:
        return self.batch if self.key is None else self.batch[self.key]

    def outputs(self, given: Tensor | None = None) -> Tensor:
        """The largest float tensor of the answer, as float64."""
        batch = self.batch if given is None else self._with(given)
        result = self.forward(self.model, batch)
        found = answer_of(result)
        if found is None:
            raise TypeError(
                f"the model returned {type(result).__name__} without a float tensor in it"
            )
        return found.double()

    def steady(self) -> Tensor:
        """The same, of a model that answers the same twice: from any other nothing can be told by
        changing its input.
        """
        first, second = self.outputs(), self.outputs()
        if first.shape != second.shape or not torch.equal(first.nan_to_num(), second.nan_to_num()):
            gap = (
                float((first - second).abs().max()) if first.shape == second.shape else float("nan")
            )
            raise ValueError(
                f"two calls with one input differ by {gap:.3g} in evaluation mode: the "
                "model draws or keeps state"
            )
        return first

    def _with(self, given: Tensor) -> Any:
        if self.key is None:
            return given
        if isinstance(self.batch, dict):
            return {**self.batch, self.key: given}
        parts = list(self.batch)
        parts[int(self.key)] = given
        return tuple(parts)


def _choose(batch: Any) -> str | int | None:
    if isinstance(batch, Tensor):
        return None
    items = (
        list(batch.items())
        if isinstance(batch, dict)
        else list(enumerate(batch))
        if isinstance(batch, (list, tuple))
        else []
    )
    tensors: list[tuple[Any, Tensor]] = [
        (key, value) for key, value in items if isinstance(value, Tensor)
    ]
    ids = [
        key
        for key, t in tensors
        if not t.is_floating_point() and t.dtype != torch.bool and t.dim() == 2 and int(t.max()) > 1
    ]
    floats = [key for key, t in tensors if t.is_floating_point() and t.dim() >= 2]
    if not ids and not floats:
        raise TypeError(
            f"the batch ({type(batch).__name__}) has no ids (batch, time) and no float "
            "tensor: give source=KEY"
        )
    chosen: str | int = (ids or floats)[0]
    return chosen
