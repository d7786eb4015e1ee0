"""Permute the tokens of the captured batch along time, on a copy of the model, dropout off.

Measured: the distance of the outputs from the permuted outputs of before. Confirmed (no positional
information reaches the outputs) below 1e-4, refuted above 1e-2.
"""

from __future__ import annotations

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.properties import measured

BLIND, SEEING = 1e-4, 1e-2


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    found = measured(bench, run, "permutation")
    if isinstance(found, str):
        return Verdict("position_permutation", "open", found)
    distance = float(found["distance"])
    text = f"the outputs for permuted tokens are {distance:.2g} away from the permuted outputs"
    outcome = "confirmed" if distance < BLIND else "refuted" if distance > SEEING else "open"
    return Verdict("position_permutation", outcome, text, distance)
