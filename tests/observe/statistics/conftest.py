from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from sawbones.schema.run import NO_GRADIENT, TENSOR_STATISTICS

Reference = Callable[
    [Sequence[torch.Tensor], Sequence[torch.Tensor | None], Sequence[torch.Tensor]],
    dict[str, np.ndarray],
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture
def reference() -> Reference:
    """Every statistic in float64, one tensor at a time, written without the operators the engine
    uses.
    """

    def measure(
        old: Sequence[torch.Tensor],
        grads: Sequence[torch.Tensor | None],
        new: Sequence[torch.Tensor],
    ) -> dict[str, np.ndarray]:
        columns: dict[str, list[float]] = {name: [] for name in TENSOR_STATISTICS}
        for before, grad, after in zip(old, grads, new, strict=True):
            p, q = _numpy(before), _numpy(after)
            columns["param_l2"].append(np.sqrt(np.sum(q**2)))
            columns["update_l2"].append(np.sqrt(np.sum((q - p) ** 2)))
            if grad is None:
                for name in TENSOR_STATISTICS[:5]:
                    columns[name].append(NO_GRADIENT)
                continue
            g = _numpy(grad)
            tiny = torch.finfo(grad.dtype).tiny
            columns["grad_l2"].append(np.sqrt(np.sum(g**2)))
            columns["grad_max"].append(np.max(np.abs(g)))
            columns["grad_zero_share"].append(np.mean(g == 0))
            columns["grad_nonfinite"].append(np.sum(~np.isfinite(g)))
            columns["grad_subnormal_share"].append(np.mean((g != 0) & (np.abs(g) < tiny)))
        return {name: np.array(values) for name, values in columns.items()}

    return measure


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    dense = tensor.detach().cpu()
    return (
        (dense.to_dense() if dense.layout is not torch.strided else dense).double().numpy().ravel()
    )
