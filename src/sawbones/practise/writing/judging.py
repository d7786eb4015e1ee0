"""A written file -> points, the first term that is wrong, and the mistake that gives just that."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sawbones.practise.writing.assignments import Assignment, Terms
from sawbones.schema.errors import SawbonesError

LONGEST = 60.0  # seconds, for all hidden inputs together
LATE_COST = 2.0  # points for every minute over the limit
MOST_LATE_COST = 50.0
NOT_BY_HAND = ("sawbones", "torch", "jax", "tensorflow", "scipy", "sklearn", "keras")


class NotWritten(SawbonesError):
    """A file that cannot be judged."""


@dataclass(frozen=True)
class Outcome:
    """Of one hidden input: what was given back, or why there is nothing."""

    got: Terms | None
    why: str = ""
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged:
    share: float  # of terms that are right, over all hidden inputs
    passed: bool
    first_wrong: tuple[str, ...]  # lines; none where all is right
    mistake: str = ""  # what gives exactly these numbers

    def points(self, minutes: float, limit: float) -> float:
        late = min(MOST_LATE_COST, LATE_COST * max(0.0, minutes - limit))
        return max(0.0, round(100 * self.share - late, 1))


def judge(asked: Assignment, path: Path, seed: int) -> Judged:
    _written_by_hand(path)
    return compare(asked, seed, _outcomes(asked, path, seed))


def compare(asked: Assignment, seed: int, outcomes: list[Outcome]) -> Judged:
    cases = asked.cases(seed)
    wanted = [asked.reference(**case.arguments) for case in cases]
    right = 0
    first: tuple[str, ...] = ()
    wrong: list[tuple[int, str]] = []
    for number, (case, expected, outcome) in enumerate(zip(cases, wanted, outcomes, strict=True)):
        for term in asked.terms:
            if outcome.got is None:
                said = outcome.why
            else:
                said = difference(asked, outcome.got[term], expected[term])
                if said:
                    wrong.append((number, term))
            right += not said
            if said and not first:
                about = f"hidden input {number + 1} of {len(cases)} ({case.about})"
                first = (about, f"{term}: {said}" if outcome.got is not None else said)
        if outcome.changed and not first:
            first = (case.about, f"{', '.join(outcome.changed)} was changed in place")
    share = right / (len(cases) * len(asked.terms))
    lost = any(outcome.got is None for outcome in outcomes)
    mistake = "" if lost or not wrong else _mistake(asked, seed, outcomes, wrong)
    return Judged(share, not first, first, mistake)


def _written_by_hand(path: Path) -> None:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotWritten(f"there is no {path}") from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise NotWritten(f"{path} is no Python that runs: {error}") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        taken = [name for name in names if name.partition(".")[0] in NOT_BY_HAND]
        if taken:
            raise NotWritten(
                f"{path}:{node.lineno} imports {taken[0]}; the exercise is to do it with NumPy"
            )


def _outcomes(asked: Assignment, path: Path, seed: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory(prefix="practise-") as scratch:
        command = [sys.executable, "-m", "sawbones.practise.writing.child"]
        late = False
        try:
            subprocess.run(
                [*command, str(path.resolve()), asked.name, str(seed), scratch],
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            late = True
        ended = f"it did not end within {LONGEST:g} s" if late else "the process ended before it"
        return [_read(Path(scratch) / str(n), ended) for n in range(len(asked.cases(seed)))]


def _read(path: Path, ended: str) -> Outcome:
    try:
        said: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    except OSError:
        return Outcome(None, ended)
    if "error" in said:
        return Outcome(None, said["error"])
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
        return Outcome(dict(arrays), "", tuple(said["changed"]))


def difference(asked: Assignment, got: Any, expected: Any) -> str:
    """What is wrong first: shape, dtype, then the first entry; empty where nothing is."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        turned = "; its transpose would fit" if got.shape == expected.shape[::-1] else ""
        return f"shape {got.shape}, expected {expected.shape}{turned}"
    if got.dtype != expected.dtype:
        return f"dtype {got.dtype}, expected {expected.dtype}"
    close = _close(asked, got, expected)
    if close.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    place = str(list(at)) if at else ""
    return (
        f"{int((~close).sum())} of {close.size} entries are wrong; the first one is {place} "
        f"{got[at]:.10g}, expected {expected[at]:.10g}{_looks_like(got, expected)}"
    ).replace("  ", " ")


def _close(asked: Assignment, got: Any, expected: Any) -> Any:
    if expected.dtype.kind != "f":
        return got == expected
    finite = np.abs(expected[np.isfinite(expected)])
    slack = asked.relative * float(finite.max(initial=0.0)) + asked.absolute
    return np.isclose(got, expected, rtol=0.0, atol=slack, equal_nan=True)


def _looks_like(got: Any, expected: Any) -> str:
    if expected.dtype.kind != "f" or not np.isfinite(got).all():
        return ""
    told = np.abs(expected) > 1e-9 * np.abs(expected).max(initial=0.0)
    if not told.any():
        return ""
    ratios = got[told] / expected[told]
    if np.allclose(got, expected * ratios[0], rtol=1e-6) and np.allclose(ratios, ratios[0]):
        return f"; every entry is {ratios[0]:.4g} times what is expected"
    square = got.ndim == 2 and got.shape[0] == got.shape[1]
    return "; it is the transpose" if square and np.allclose(got, expected.T) else ""


def _mistake(
    asked: Assignment, seed: int, outcomes: list[Outcome], wrong: list[tuple[int, str]]
) -> str:
    """The mistake that gives every wrong term, and most of the others."""
    best, most = "", 0
    for words, mistaken in asked.mistakes.items():
        alike = set()
        for number, case in enumerate(asked.cases(seed)):
            made, got = mistaken(**case.arguments), outcomes[number].got or {}
            alike |= {(number, t) for t in got if not difference(asked, got[t], made[t])}
        if set(wrong) <= alike and len(alike) > most:
            best, most = words, len(alike)
    return best
