"""Findings and verdicts: what a check says, what an experiment showed, what the report carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sawbones.schema.site import Site

STATUSES = ("suspected", "likely", "proven")


@dataclass(frozen=True, slots=True)
class Evidence:
    text: str
    signal: str = ""
    steps: tuple[int, ...] = ()
    value: float | None = None
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """What to change. `replace` holds (old text, new text) on the finding's line, from which the
    diff is made.
    """

    summary: str
    replace: tuple[str, str] | None = None
    insert_before: str | None = None
    insert_after: str | None = None
    patch: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an experiment showed. outcome: confirmed, refuted or open (it could not decide, and
    why).
    """

    experiment: str
    outcome: str
    result: str
    baseline: float | None = None
    with_remedy: float | None = None
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    fault: str
    status: str
    confidence: float
    title: str
    where: tuple[Site, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    experiment: str | None = None  # name of the experiment that would decide it
    params: Mapping[str, Any] = field(default_factory=dict)  # what the experiment needs to know
    verdict: Verdict | None = None
    test: str | None = None


@dataclass(frozen=True, slots=True)
class CouldNotLook:
    fault: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    verdict: str  # healthy, sick, crashed
    script: str
    steps: int
    seconds: float
    findings: tuple[Finding, ...] = ()
    refuted: tuple[Finding, ...] = ()
    could_not_look: tuple[CouldNotLook, ...] = ()
    looked: tuple[str, ...] = ()  # faults whose check ran and stayed silent
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    masked: Mapping[str, int] = field(default_factory=dict)  # secrets, by where they came from
