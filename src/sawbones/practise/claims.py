"""Claims about a run in a small grammar, each measured again by the grader.

    loss@last < 0.3          how the loss ends, as the script computes it: the median of the last fifth
                             of the steps, since one batch more or less is chance
    grad_norm@12 > 40        the gradient norm of step 12
    loss@80..100 > 1.2       the mean over these steps
    eval@last > 2            the last evaluation by the trained loss
    lr@0 == 0.3              equal to the digits that are given
    steps == 200             how many optimizer steps there were
    first_nonfinite == 16    the first step whose loss is NaN or infinite
    label_probe < 0.1        how well inputs tell the labels that they were trained with: 0 is no
                             better than chance, 1 is always
    crashes                  the script ends in an error
    try lr=0.1 heals         the trial of that name confirms what it looks for
    try clip=1 does not heal

Where the optimizer never steps, loss@N is the loss of the Nth call in training, from 0.
Quantities of a step: loss, grad_norm, param_norm, update_norm, lr, step_ms, data_wait_ms, memory_mb.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sawbones.practise.measuring import Measured
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError
from sawbones.stats.evaluations import validation_curve
from sawbones.stats.label_probes import way_to_certainty
from sawbones.stats.loss_calls import carrying
from sawbones.stats.series import end_level

SERIES = (
    "loss",
    "grad_norm",
    "param_norm",
    "update_norm",
    "lr",
    "step_ms",
    "data_wait_ms",
    "memory_mb",
    "eval",
)
SINGLE = ("steps", "first_nonfinite", "label_probe")
VARYING = ("loss", "grad_norm", "update_norm", "step_ms", "data_wait_ms")  # from batch to batch
_COMPARISON = re.compile(
    r"^(?P<what>\w+)(?:@(?P<at>last|first|\d+(?:\.\.\d+)?))?\s*(?P<sign><=|>=|==|<|>)\s*(?P<number>\S+)$"
)
_TRIAL = re.compile(r"^try\s+(?P<name>\S+)\s+(?P<not>does not heal|heals)$")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class NoClaim(SawbonesError):
    """Text that is not in the grammar."""


@dataclass(frozen=True)
class Claim:
    text: str
    what: str  # a quantity, "crashes", or "try"
    at: str = "last"
    sign: str = ""
    number: str = ""
    trial: str = ""
    heals: bool = True

    @property
    def is_trial(self) -> bool:
        return self.what == "try"


def parse(text: str) -> Claim:
    plain = " ".join(text.split())
    if plain == "crashes":
        return Claim(plain, "crashes")
    trial = _TRIAL.match(plain)
    if trial is not None:
        return Claim(plain, "try", trial=trial["name"], heals=trial["not"] == "heals")
    found = _COMPARISON.match(plain)
    if found is None or found["what"] not in (*SERIES, *SINGLE):
        raise NoClaim(
            f"{text!r} is no claim. Write one as `loss@last > 1.2`, `grad_norm@12 > 40`, `crashes` "
            f"or `try lr=0.1 heals`. Quantities: {', '.join((*SERIES, *SINGLE))}"
        )
    try:
        float(found["number"])
    except ValueError:
        raise NoClaim(f"{text!r}: {found['number']!r} is no number") from None
    return Claim(plain, found["what"], found["at"] or "last", found["sign"], found["number"])


def value_of(claim: Claim, measured: Measured) -> float | None:
    """None: there is nothing of the kind in this run."""
    run = measured.run
    if claim.what == "crashes":
        return float(measured.crashed)
    if run is None:
        return None
    if claim.what == "steps":
        return float(run.num_steps)
    if claim.what == "label_probe":
        pairs = run.label_probe.batches if run.label_probe is not None else None
        return way_to_certainty(pairs) if pairs is not None else None
    steps, values = series(run, claim.what if claim.what in SERIES else "loss")
    if claim.what == "first_nonfinite":
        bad = np.flatnonzero(~np.isfinite(values))
        return float(steps[bad[0]]) if len(bad) else None
    return _at(steps, values, claim)


def series(run: Run, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values; losses as the script computes them, whatever backward() is called on."""
    if what == "eval":
        steps, values, _ = validation_curve(run)
        return np.asarray(steps), np.asarray(values, np.float64)
    if what not in run.steps:
        return np.zeros(0), np.zeros(0)
    values = np.asarray(run.steps[what], np.float64)
    if what == "loss" and not len(values):
        return _called(run)
    if what == "loss":
        values = values / _differentiated_share(run)
    return np.asarray(run.steps["step"]), values


def _called(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Of a run whose optimizer never steps: the loss of each call in training, by its number."""
    values = [
        float(event.data["value"])
        for event in run.of_kind("loss")
        if event.phase == "train" and isinstance(event.data.get("value"), (int, float))
    ]
    return np.arange(len(values)), np.asarray(values, np.float64)


def _differentiated_share(run: Run) -> float:
    """What backward() was called on, over the loss that the script computes and prints: minus one
    where the sign is wrong, a half where two micro-batches are accumulated.
    """
    known = [s.facts.root_over_mean for s in carrying(run) if s.facts.root_over_mean]
    if not known:
        return 1.0
    share = float(np.median(known))
    parts = 1 / abs(share)
    return share if round(parts) >= 1 and abs(parts - round(parts)) < 1e-3 * parts else 1.0


def _at(steps: np.ndarray, values: np.ndarray, claim: Claim) -> float | None:
    if not len(values):
        return None
    if claim.at == "last":
        level = claim.what in VARYING and math.isfinite(values[-1])
        return end_level(values) if level else float(values[-1])
    if claim.at == "first":
        return float(values[0])
    first, _, last = claim.at.partition("..")
    chosen = values[(steps >= int(first)) & (steps <= int(last or first))]
    return float(chosen.mean()) if len(chosen) else None


def holds(claim: Claim, value: float | None) -> bool:
    """Whether the claim is true of what was measured."""
    if value is None:
        return False
    if claim.what == "crashes":
        return bool(value)
    number = float(claim.number)
    if claim.sign != "==":
        return _SIGNS[claim.sign](value, number)
    if not math.isfinite(number) or not math.isfinite(value):
        return math.isnan(number) == math.isnan(value) and (math.isnan(value) or value == number)
    digits = re.sub(r"e.*|[^\d]", "", claim.number.lower()).lstrip("0")
    precision = 0.5 * 10.0 ** (_exponent(number) - max(len(digits), 1) + 1)
    return abs(value - number) <= precision


def _exponent(number: float) -> int:
    return math.floor(math.log10(abs(number))) if number else 0
