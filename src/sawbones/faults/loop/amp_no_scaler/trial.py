"""Run the script again with autocast off, from the same weights and batches.

Compared at the first steps: the share of gradient elements that are exactly zero, and whether
gradients are finite; over the run: the loss. Confirmed when at least 5 of 100 gradient elements
come back, when gradients turn finite, when a large tensor whose gradient has no zeros in float32
has lost a hundredth of it, or when the loss ends clearly lower; refuted when gradients and loss are
the same without autocast.
"""

from __future__ import annotations

import math

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.protocol import measured
from sawbones.stats.series import end_level, ends_lower, start_level
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

NAME = "autocast_off"
BACK = 0.05
SOME, LARGE = 0.01, 256  # share of one tensor's gradient, and how large the tensor is at least


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("autocast_off")], max_steps=run.num_steps or 20)
    steps = min(cured.num_steps, run.num_steps)
    loss, cured_loss = end_level(run.losses[:steps]), end_level(cured.losses[:steps])
    shared = [int(s) for s in cured.tensor_steps if np.any(run.tensor_steps == s)]
    if not shared:
        return Verdict(NAME, "open", "no step was measured in both runs")
    first = shared[0]
    zero, cured_zero = _zero_share(run, first), _zero_share(cured, first)
    was_finite, is_finite = _finite(run, first), _finite(cured, first)
    text = (
        f"at step {first} {cured_zero:.0%} of the gradient elements are zero instead of "
        f"{zero:.0%}; "
        f"the loss ends at {cured_loss:.4g} instead of {loss:.4g}"
    )
    lower = math.isfinite(loss) and ends_lower(cured_loss, loss, start_level(run.losses), 0.2)
    lost, at = _lost_in_one(run, cured, shared)
    if lost >= SOME:
        text += (
            f"; at step {at} {lost:.1%} of one tensor's gradient is zero that has no zeros "
            "in float32"
        )
    back = zero - cured_zero > BACK or lost >= SOME or (is_finite and not was_finite) or lower
    return Verdict(NAME, "confirmed" if back else "refuted", text, zero, cured_zero)


def _zero_share(run: Run, step: int) -> float:
    zeros = measured(run, "grad_zero_share", step)
    sizes = np.array(
        [t.numel if t.owner not in ("Embedding", "EmbeddingBag") else 0 for t in run.tensors]
    )[: len(zeros)]
    known = (zeros >= 0) & (sizes > 0)
    return (
        float(np.sum(zeros[known] * sizes[known]) / np.sum(sizes[known]))
        if known.any()
        else float("nan")
    )


def _lost_in_one(run: Run, cured: Run, shared: list[int]) -> tuple[float, int]:
    """The largest share of zeros in a gradient that has (all but) none in float32: units that are
    off are off in both.
    """
    found = (0.0, -1)
    for step in shared:
        zeros, cured_zeros = (
            measured(run, "grad_zero_share", step),
            measured(cured, "grad_zero_share", step),
        )
        for tensor, here, there in zip(run.tensors, zeros, cured_zeros, strict=False):
            if (
                tensor.numel >= LARGE
                and tensor.owner not in ("Embedding", "EmbeddingBag")
                and 0 <= there <= 0.05 * here
            ):
                found = max(found, (float(here), step))
    return found


def _finite(run: Run, step: int) -> bool:
    norms = measured(run, "grad_l2", step)
    return bool(len(norms)) and not np.any(np.isinf(norms))
