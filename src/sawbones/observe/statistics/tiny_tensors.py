"""A full step where all tensors are tiny: laid end to end and measured together. A call for each
would take ten times as long.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

Floats = npt.NDArray[np.float64]


class TinyTensors:
    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = np.array(sizes)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)[:-1]])
        self._old: npt.NDArray[np.float32] | None = None

    def count(
        self, tensors: Sequence[torch.Tensor], tiny: float | torch.Tensor
    ) -> dict[str, Floats]:
        """`tiny`: below it, a value is subnormal."""
        size = np.abs(_flat(tensors))
        nonzero = size != 0.0
        peak = np.maximum.reduceat(size, self._starts).astype(np.float64)  # carries NaN
        zeros = self._sizes - self._sum(nonzero)
        below = self._sum(nonzero & (size < float(tiny)))
        finite = np.isfinite(peak).all()
        nonfinite = np.zeros_like(peak) if finite else self._sum(~np.isfinite(size))
        return {
            "grad_max": peak,
            "grad_zero_share": zeros / self._sizes,
            "grad_subnormal_share": below / self._sizes,
            "grad_nonfinite": nonfinite,
        }

    def remember(self, params: Sequence[torch.Tensor]) -> None:
        self._old = _flat(params)

    def compare(self, params: Sequence[torch.Tensor]) -> dict[str, Floats]:
        """Norms of the parameters, and of how far they moved."""
        new = _flat(params)
        found = {"param_l2": self._norms(new)}
        if self._old is not None and len(self._old) == len(new):
            with np.errstate(all="ignore"):
                found["update_l2"] = self._norms(new - self._old)
        return found

    def _sum(self, values: npt.NDArray[np.bool_]) -> Floats:
        return np.add.reduceat(values, self._starts, dtype=np.float64)

    def _norms(self, values: npt.NDArray[np.float32]) -> Floats:
        wide = values.astype(np.float64)
        with np.errstate(all="ignore"):
            return np.sqrt(np.add.reduceat(wide * wide, self._starts))


def _flat(tensors: Sequence[torch.Tensor]) -> npt.NDArray[np.float32]:
    return np.concatenate([tensor.detach().numpy().ravel() for tensor in tensors])
