"""Whole calls of a model, row by row, for models that are given categories as codes: what its
training was given, and what an evaluation can be asked once more with other codes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils import _pytree

from sawbones.observe.populations.held import LEAST_ROWS

MAX_ROWS = 4000  # of training, and of one evaluation
MAX_WIDTH = 64  # columns of one input: more are texts or pictures
MAX_VALUES = 1 << 20  # of all evaluations together
LEAST_CODES, MOST_CODES = 3, 64

Table = npt.NDArray[np.float32]
Place = tuple[int, int]  # input, and its column


@dataclass
class Calls:
    """Of one evaluation, or of training: every input with one row for each sample."""

    spec: Any = None
    parts: list[list[torch.Tensor]] = field(default_factory=list)  # by call, then by input
    rows: int = 0
    is_whole: bool = True  # all calls up to the limit are kept

    def add(self, leaves: list[torch.Tensor] | None, spec: Any) -> int:
        """The number of values that were kept."""
        if leaves is None or not self.is_whole or (self.parts and spec != self.spec):
            self.is_whole = self.is_whole and leaves is not None and spec == self.spec
            return 0
        if self.rows >= MAX_ROWS:
            return 0
        self.spec = spec
        self.parts.append([t.detach().clone() for t in leaves])
        self.rows += len(leaves[0])
        return sum(t.numel() for t in leaves)

    def inputs(self) -> list[torch.Tensor]:
        """Each input with the rows of all calls."""
        return [torch.cat(one)[:MAX_ROWS] for one in zip(*self.parts, strict=True)]


class CodedCalls:
    def __init__(self) -> None:
        self.trained = Calls()
        self._values = 0

    def trains(self, given: Any) -> None:
        if self.trained.rows < MAX_ROWS:
            self.trained.add(*_inputs(given))

    def forget(self) -> None:
        self._values = 0

    def asked(self, calls: Calls, given: Any) -> None:
        """An evaluating call; it belongs to these."""
        if not self.trained.parts or not self.trained.is_whole:
            return
        if self._values > MAX_VALUES:
            calls.is_whole = False
        self._values += calls.add(*_inputs(given))

    def codes(self, calls: Calls) -> dict[Place, tuple[Table, Table]]:
        """Columns of few values in training, all of which an evaluation has too: the rows of
        training and of the evaluation.
        """
        trained = self.trained
        if not calls.parts or not (calls.is_whole and trained.is_whole):
            return {}
        if calls.spec != trained.spec or min(calls.rows, trained.rows) < 2 * LEAST_ROWS:
            return {}
        found: dict[Place, tuple[Table, Table]] = {}
        for number, (before, after) in enumerate(
            zip(trained.inputs(), calls.inputs(), strict=True)
        ):
            ours, theirs = _columns(before), _columns(after)
            if ours.shape[1] != theirs.shape[1]:
                return {}
            for i in range(ours.shape[1]):
                known = np.unique(ours[:, i])
                few = LEAST_CODES <= len(known) <= MOST_CODES
                if few and np.isin(theirs[:, i], known).all():
                    found[number, i] = ours[:, i], theirs[:, i]
        return found


def put(inputs: list[torch.Tensor], place: Place, values: Table) -> None:
    """Writes a column of these inputs."""
    number, column = place
    values_N = torch.from_numpy(values).to(inputs[number].dtype)
    if inputs[number].dim() == 1:
        inputs[number][:] = values_N
    else:
        inputs[number][:, column] = values_N


def again(spec: Any, inputs: list[torch.Tensor]) -> tuple[Any, Any]:
    """(args, kwargs) of a call with these inputs."""
    args, kwargs = _pytree.tree_unflatten(inputs, spec)
    return args, kwargs


def _inputs(given: Any) -> tuple[list[torch.Tensor] | None, Any]:
    """None where not all that a model is given are tensors with a row for each sample."""
    leaves, spec = _pytree.tree_flatten(given)
    plain = [t for t in leaves if isinstance(t, torch.Tensor) and _is_plain(t)]
    if not plain or len(plain) != len(leaves) or len({len(t) for t in plain}) != 1:
        return None, None
    return plain, spec


def _is_plain(tensor: torch.Tensor) -> bool:
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return False
    here = tensor.device.type == "cpu" and tensor.layout is torch.strided
    small = tensor.dim() == 1 or (tensor.dim() == 2 and tensor.shape[1] <= MAX_WIDTH)
    return here and small and not tensor.is_quantized and not tensor.is_complex()


def _columns(tensor: torch.Tensor) -> Table:
    table: Table = tensor.detach().float().reshape(len(tensor), -1).numpy()
    return table
