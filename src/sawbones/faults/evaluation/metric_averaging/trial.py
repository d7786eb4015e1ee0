"""Run the script again with evaluation batches of one sample, and compare what it prints.

Confirmed when training is the same and a printed number with decimals changes by more than
rounding; refuted when none does.
"""

from __future__ import annotations

import re

import numpy as np

from sawbones.schema import Finding, Run, Verdict
from sawbones.trials.bench import Bench
from sawbones.trials.child import Remedy

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?:e[-+]?\d+)?(?![\w.])")
NAME = "evaluation_batch_size"


def run(bench: Bench, finding: Finding, run: Run) -> Verdict:
    loaders = finding.params.get("loaders")
    if not loaders:
        return Verdict(NAME, "open", "no loader of the evaluation was seen")
    plain = bench.rerun()
    said = bench.log_tail
    single = bench.rerun([Remedy(NAME, {"loaders": list(loaders)})])
    said_single = bench.log_tail
    steps = min(plain.num_steps, single.num_steps)
    if not np.array_equal(plain.losses[:steps], single.losses[:steps], equal_nan=True):
        return Verdict(
            NAME,
            "open",
            (
                "training itself changed with the evaluation's batch size, so the scores "
                "cannot be compared"
            ),
        )
    if not any(len(batch.fingerprints) == 1 for batch in single.batches):
        return Verdict(NAME, "open", "the evaluation's batches could not be made smaller")
    pairs = _paired(said, said_single)
    if not pairs:
        return Verdict(NAME, "open", "the script prints no number that could be compared")
    moved = [
        (a, b) for a, b, unit in pairs if abs(a - b) > max(2.5 * unit, 2e-3 * max(abs(a), abs(b)))
    ]
    if not moved:
        return Verdict(
            NAME,
            "refuted",
            f"{len(pairs)} printed numbers stay the same with evaluation batches of one sample",
        )
    before, after = max(moved, key=lambda p: abs(p[0] - p[1]) / (abs(p[0]) + 1e-12))
    text = (
        f"a printed score changes from {before:g} to {after:g} with evaluation batches of one "
        "sample; training does not change"
    )
    return Verdict(NAME, "confirmed", text, before, after)


def _paired(first: str, second: str) -> list[tuple[float, float, float]]:
    """Numbers at the same place of lines that differ in nothing but numbers, with the unit of their
    last digit.
    """
    found = []
    for a, b in zip(first.splitlines(), second.splitlines(), strict=False):
        if _NUMBER.sub("#", a) != _NUMBER.sub("#", b) or re.search(
            r"\b(sec|second|time|ms|it/s)", a
        ):
            continue
        for x, y in zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True):
            digits = len(x.split("e")[0].split(".")[1])
            found.append((float(x), float(y), 10.0**-digits))
    return found
