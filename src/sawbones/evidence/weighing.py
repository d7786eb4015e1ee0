"""From readings to a finding: the one place where a status is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sawbones.evidence.confidence import confidence_of
from sawbones.evidence.counting_words import singular
from sawbones.evidence.readings import ABSENT, WEAK
from sawbones.schema import Evidence, Explanation, Finding, Fix, Site
from sawbones.schema.errors import SawbonesError
from sawbones.schema.finding import STATUSES

# Best first: the reading that carries the finding gives its confidence.
_KINDS = ("exact", "refused", "counted", "compared")


class NothingToJudge(SawbonesError):
    """A check found nothing that it could judge: it has not looked, and says why."""


def finding(
    title: str,
    where: Sequence[Site],
    evidence: Sequence[Evidence],
    fix: Fix | None = None,
    *,
    at_most: str = "proven",
    trial: str | None = None,
    params: Mapping[str, Any] | None = None,
    explanation: Explanation | None = None,
) -> Finding:
    """The finding that these readings make. `at_most`: what a healthy program could show as well
    is no more than that until a trial has decided.

    The fault is the name of the check's folder and is put in by whoever runs the check.
    """
    status = STATUSES[min(STATUSES.index(_status(evidence)), STATUSES.index(at_most))]
    # Crashes have first tries of their own, whatever else was read beside the refusal.
    kind = _kind(evidence) if explanation is None else "refused"
    confidence = confidence_of(kind, status)
    return Finding(
        "",
        status,
        confidence.lower,
        singular(title),
        tuple(where),
        tuple(replace(reading, text=singular(reading.text)) for reading in evidence),
        fix,
        trial,
        params or {},
        confidence_n=confidence.n,
        explanation=explanation,
    )


def _status(evidence: Sequence[Evidence]) -> str:
    """An exact reading is proof. Readings against a limit make it likely, and a suspicion where
    one of them is weak.
    """
    decisive = [reading for reading in evidence if reading.kind and reading.strength != ABSENT]
    if not decisive or any(reading.strength == WEAK for reading in decisive):
        return "suspected"
    return "proven" if any(reading.kind == "exact" for reading in decisive) else "likely"


def _kind(evidence: Sequence[Evidence]) -> str:
    kinds = {reading.kind for reading in evidence if reading.strength != ABSENT}
    return next((kind for kind in _KINDS if kind in kinds), "compared")
