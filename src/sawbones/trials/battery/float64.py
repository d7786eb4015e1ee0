"""Run the script again with the model in float64, from the same weights and batches.

Measured: whether losses are finite, the share of gradient elements that are exactly zero, and where
the loss ends. Confirmed (precision is the cause) when non-finite losses turn finite, when at least
5 of 100 gradient elements come back, or when the loss ends lower by 15 % of where it began; refuted
when nothing of that moves. Open when the script cannot run in float64.
"""

from __future__ import annotations

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.stats.protocol import measured
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy
from sawbones.trials.side_by_side import compare

CLEARLY = 0.15
BACK = 0.05


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    cured = bench.rerun([Remedy("float64")], max_steps=run.num_steps)
    pair = compare(run, cured)
    if cured.ending.kind == "exception" and run.ending.kind != "exception":
        return Verdict(
            "float64",
            "open",
            f"the script does not run in float64: {cured.ending.exception}: {cured.ending.message}"[
                :300
            ],
        )
    if pair.steps < 1 or not cured.remedies.get("float64"):
        return Verdict("float64", "open", "no model was called that could be converted")
    bad, still = (int(np.sum(~np.isfinite(r.losses[: pair.steps]))) for r in (run, cured))
    zero, cured_zero = zero_share(run), zero_share(cured)
    text = (
        f"in float64 {still} losses are non-finite instead of {bad}; {cured_zero:.0%} of the "
        "first gradients are zero instead of "
    )
    text += f"{zero:.0%}; {pair}"
    better = (
        (bad > 0 and still == 0)
        or zero - cured_zero > BACK
        or (not pair.is_short and pair.lower(CLEARLY))
    )
    return Verdict("float64", "confirmed" if better else "refuted", text, pair.was, pair.now)


def zero_share(run: Run) -> float:
    """At the first measured step, over all tensors but embeddings, whose rows are zero for unused
    tokens.
    """
    if not len(run.tensor_steps):
        return float("nan")
    zeros = measured(run, "grad_zero_share", int(run.tensor_steps[0]))
    sizes = np.array(
        [0 if t.owner in ("Embedding", "EmbeddingBag") else t.numel for t in run.tensors]
    )[: len(zeros)]
    known = (zeros >= 0) & (sizes > 0)
    return (
        float(np.sum(zeros[known] * sizes[known]) / np.sum(sizes[known]))
        if known.any()
        else float("nan")
    )
