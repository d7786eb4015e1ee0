"""A sharded model whose ranks are all at hand: norms over the whole of every tensor instead of over
rank 0's part of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sawbones.schema import Run

_NORMS = ("grad_l2", "param_l2", "update_l2")
_TOTALS = ("grad_norm", "param_norm", "update_norm")


def join_shards(run: Run) -> Run:
    """Rank 0 with the norms of the whole; the other ranks keep those of their parts."""
    everyone = (run, *run.ranks)
    if len(everyone) != run.world_size or not all(r.parts_of_all for r in everyone):
        return run
    same = all(
        np.array_equal(r.tensor_steps, run.tensor_steps) and len(r.tensors) == len(run.tensors)
        for r in everyone
    )
    statistics = dict(run.statistics)
    if same:
        for name in (n for n in _NORMS if all(n in r.statistics for r in everyone)):
            statistics[name] = _joined([r.statistics[name] for r in everyone]).astype(np.float32)
        if all("grad_max" in r.statistics for r in everyone):
            statistics["grad_max"] = np.maximum.reduce([r.statistics["grad_max"] for r in everyone])
    steps = dict(run.steps)
    shortest = min(r.num_steps for r in everyone)
    if all(
        np.array_equal(r.steps["step"][:shortest], run.steps["step"][:shortest]) for r in everyone
    ):
        for name in (n for n in _TOTALS if all(n in r.steps for r in everyone)):
            whole = _joined([r.steps[name][:shortest] for r in everyone])
            steps[name] = np.concatenate([whole, run.steps[name][shortest:]])
    return replace(run, statistics=statistics, steps=steps)


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """Root of the sum of squares. An empty part was not measured and adds nothing; where no part
    was, it stays unmeasured.
    """
    wide = np.stack([np.asarray(p, np.float64) for p in parts])
    unmeasured = wide < 0
    total = np.sqrt(np.sum(np.where(unmeasured, 0.0, wide) ** 2, axis=0))
    joined: npt.NDArray[np.float64] = np.where(unmeasured.all(axis=0), wide[0], total)
    return joined
