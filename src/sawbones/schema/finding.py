"""Findings and verdicts: what a check says, what an experiment showed, what the report carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sawbones.schema.site import Site

STATUSES = ("suspected", "likely", "proven")
VERDICTS = ("crashed", "sick", "unexplained", "inconclusive", "healthy")  # by precedence
FIX_LEVELS = ("display", "unsafe", "safe", "verified")


@dataclass(frozen=True, slots=True)
class Evidence:
    text: str
    signal: str = ""
    steps: tuple[int, ...] = ()
    value: float | None = None
    expected: float | None = None
    kind: str = ""  # exact, counted, compared or refused; "" is context that decides nothing
    strength: str = ""  # clear, weak or absent, against the reading's own null
    interval: tuple[float, float] | None = None  # of a counted share, 95 %
    n: int | None = None  # how many were counted


@dataclass(frozen=True, slots=True)
class Fix:
    """What to change. `replace` holds (old text, new text) of the user's own source, where a check
    has read it off the line that died.
    """

    summary: str
    replace: tuple[str, str] | None = None
    patch: str | None = None
    level: str = "display"  # one of FIX_LEVELS: how far the change may be trusted
    measured: Mapping[str, Any] | None = None  # what was seen with the change applied


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
    title: str = ""  # what was done, in a sentence


@dataclass(frozen=True, slots=True)
class Size:
    """One row of the table under a crash: a name, its size, and what made it that."""

    name: str
    size: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an operation was refused. What to do about it is the finding's fix."""

    expected: str
    got: str
    because: str = ""
    sizes: tuple[Size, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault with its readings (`evidence`), places in the source (`where`, the best first) and a
    status: suspected, likely or proven. `fix` says what to change, `verdict` what a trial showed.
    """

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
    confidence_n: int = 0  # first tries behind the confidence; 0: not measured
    explanation: Explanation | None = None  # of a crash


@dataclass(frozen=True, slots=True)
class Ignored:
    """A finding that the user lives with, and what says so."""

    finding: Finding
    by: str


@dataclass(frozen=True, slots=True)
class CouldNotLook:
    fault: str
    why: str


@dataclass(frozen=True, slots=True)
class CouldNotSee:
    """A symptom that could not be looked for, and why."""

    symptom: str
    why: str


@dataclass(frozen=True, slots=True)
class Symptom:
    """What is wrong to see, measured. Never an answer by itself."""

    symptom: str
    cls: str  # ill or notable
    text: str
    value: float | None = None
    expected: float | None = None
    steps: tuple[int, ...] = ()
    explained_by: str | None = None  # the fault of a finding

    @property
    def stands(self) -> bool:
        """An illness that no finding accounts for."""
        return self.cls == "ill" and self.explained_by is None


@dataclass(frozen=True, slots=True)
class Cleared:
    """A layer that a trial has shown to be without fault."""

    layer: str
    by: str
    result: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not as it was in a run that worked."""

    what: str  # version, commit, arguments, setting, data, event or loss
    layer: str  # "" where it belongs to none
    text: str
    step: int | None = None  # the first one, where it is of a step
    site: Site | None = None  # where that is in the program as it is now


@dataclass(frozen=True, slots=True)
class AgainstGood:
    """The comparison with a recording from when it worked."""

    run: str
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of a diagnosis: the verdict, findings with root causes first, symptoms, what was
    refuted, and what could not be looked at. `sawbones diagnose --json` writes the same.
    """

    verdict: str  # one of VERDICTS
    script: str
    steps: int
    seconds: float
    findings: tuple[Finding, ...] = ()
    refuted: tuple[Finding, ...] = ()
    could_not_look: tuple[CouldNotLook, ...] = ()
    looked: tuple[str, ...] = ()  # faults whose check ran and stayed silent
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    cleared: tuple[Cleared, ...] = ()
    could_not_see: tuple[CouldNotSee, ...] = ()
    progress: str = ""  # what the run has learned, in one sentence
    masked: Mapping[str, int] = field(default_factory=dict)  # secrets, by where they came from
    ignored: tuple[Ignored, ...] = ()  # change neither verdict nor exit status
    against_good: AgainstGood | None = None
