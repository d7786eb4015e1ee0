"""What `sawbones try short` is asked to hold to: numbers of its end, and a checkpoint that a second
run makes again bit for bit.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawbones.schema import Run, Verdict
from sawbones.schema.errors import SawbonesError
from sawbones.trials.battery.short import SECONDS, STEPS
from sawbones.trials.bench import Bench
from sawbones.trials.remedies.hashed_checkpoints import FILE

_TEXT = re.compile(r"\s*(?P<name>[^\s<>=!]+)\s*(?P<sign><=|>=|==|<|>)\s*(?P<bound>\S+)\s*")
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
COLUMNS = ("loss", "grad_norm", "lr")
HASH = "hash"


class NoExpectation(SawbonesError):
    """A text that is no comparison, or a name that the run does not have."""


@dataclass(frozen=True, slots=True)
class Expectation:
    name: str
    sign: str
    bound: float | str

    def __str__(self) -> str:
        bound = self.bound if isinstance(self.bound, str) else f"{self.bound:g}"
        return f"{self.name} {self.sign} {bound}"


def expectation(text: str) -> Expectation:
    found = _TEXT.fullmatch(text)
    if found is None:
        raise NoExpectation(f'--expect {text!r} is no comparison. Write: --expect "loss < 2.0"')
    name, sign, bound = found["name"], found["sign"], found["bound"]
    if name == HASH:
        if sign != "==":
            raise NoExpectation(f'--expect {text!r}: a hash is compared by ==, as "{HASH} == 3f9a"')
        return Expectation(name, sign, bound)
    try:
        return Expectation(name, sign, float(bound))
    except ValueError:
        raise NoExpectation(f"--expect {text!r}: {bound!r} is no number") from None


def last_values(run: Run) -> dict[str, float]:
    """What was measured last under each name; a trainer's own names go first."""
    columns = {name: run.steps[name] for name in COLUMNS if name in run.steps}
    found = {name: float(values[-1]) for name, values in columns.items() if len(values)}
    for row in run.logged:
        found |= row.metrics
    return found


def hold_to(expected: Expectation, values: dict[str, float], checkpoint: str | None) -> Verdict:
    """Confirmed when it does not hold: something is wrong, as for the other trials."""
    name = f"expect {expected}"
    if expected.name == HASH:
        if checkpoint is None:
            return Verdict(name, "open", "no checkpoint was saved")
        same = checkpoint.startswith(str(expected.bound))
        return Verdict(name, "refuted" if same else "confirmed", f"{HASH} is {checkpoint}")
    if expected.name not in values:
        listed = ", ".join([*values, HASH])
        raise NoExpectation(f"{expected.name!r} was not measured. There are: {listed}")
    value = values[expected.name]
    holds = math.isfinite(value) and _SIGNS[expected.sign](value, expected.bound)
    return Verdict(
        name,
        "refuted" if holds else "confirmed",
        f"{expected.name} is {value:.6g}" + ("" if holds else ", which was not expected"),
        with_remedy=value,
    )


def checkpoints(run: Run) -> list[dict[str, Any]]:
    file = Path(run.folder) / FILE
    return list(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else []


def hash_of(saved: list[dict[str, Any]]) -> str | None:
    """Of the last checkpoint."""
    if not saved:
        return None
    text = json.dumps(saved[-1]["parts"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def same_twice(bench: Bench, first: list[dict[str, Any]], remedies: Any) -> Verdict:
    """A second run from the same start: are its checkpoints the same, part by part?"""
    if not first:
        return Verdict(HASH, "open", "no checkpoint was saved: there is nothing to hash")
    second = checkpoints(bench.rerun(remedies, max_steps=STEPS, seconds=SECONDS))
    different = _first_difference(first, second)
    if different is not None:
        return Verdict(HASH, "confirmed", f"two runs save different checkpoints: {different}")
    last = first[-1]
    text = f"{hash_of(first)} for {last['file']} of step {last['step']}, the same in two runs"
    return Verdict(HASH, "refuted", text)


def _first_difference(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> str | None:
    for a, b in zip(first, second, strict=False):
        place = f"{a['file']} of step {a['step']}"
        if set(a["parts"]) != set(b["parts"]):
            only = sorted(set(a["parts"]) ^ set(b["parts"]))
            return f"{place} has {only[0]} in one of them only"
        for part, digest in a["parts"].items():
            if b["parts"][part] != digest:
                others = sum(b["parts"][p] != d for p, d in a["parts"].items())
                return f"{part} of {place} ({others} of {len(a['parts'])} parts differ)"
    if len(first) != len(second):
        return f"{len(first)} checkpoints in one run, {len(second)} in the other"
    return None
