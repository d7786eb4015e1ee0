"""What every check must do, whatever its fault: the complaints against one check, none for a good
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from sawbones.evidence import NothingToJudge
from sawbones.faults import Check
from sawbones.schema import Finding, Run
from sawbones.schema.observed import Observed
from sawbones.schema.signals import missing_signal, without
from sawbones.scoring.cases import Case


@dataclass(frozen=True)
class Files:
    """What is known of the patient with this check's fault."""

    case: Case  # the broken script and the lines its fault lies in
    broken: Run
    twin: Run
    other_twins: Mapping[str, Run]


def findings(check: Check, run: Run) -> list[Finding]:
    if missing_signal(run, check.needs):
        return []
    try:
        return list(check.function(run))
    except NothingToJudge:
        return []


# How the recording was made, rather than something that it shows.
OF_RECORDING = {"events_in_full", "operators_heard", "device", "compiled", "cpu_time"}
OBSERVED = {f.name for f in fields(Observed)} - OF_RECORDING


@dataclass(frozen=True)
class Watched(Run):
    """A run that remembers which of its signals were asked for."""

    asked: set[str] = field(default_factory=set)

    def __getattribute__(self, name: str) -> Any:
        if name in OBSERVED:
            object.__getattribute__(self, "asked").add(name)
        return super().__getattribute__(name)


def signals_read(check: Check, run: Run) -> set[str]:
    watched = Watched(**vars(run))
    findings(check, watched)
    asked = watched.asked
    for signal in check.needs:  # by the signal's own removal: its name may be another one
        rest = without(run, signal)
        asked -= {name for name in OBSERVED if getattr(rest, name) is not getattr(run, name)}
    return asked


def complaints(check: Check, files: Files) -> Iterator[str]:
    if why := missing_signal(files.broken, check.needs):
        yield f"could not look at its own fault: {why}"
        return
    found = findings(check, files.broken)
    if not found:
        yield "stays silent on its own fault"
    elif not any(files.case.located(site.file, site.line) for f in found for site in f.where[:2]):
        named = (
            ", ".join(f"{site.file}:{site.line}" for f in found for site in f.where[:2])
            or "no place"
        )
        yield f"names {named}; the fault lies in lines {sorted(files.case.lines)}"
    for finding in findings(check, files.twin):
        yield f"fires on its healthy twin: {finding.status}, {finding.title}"
    for name, run in files.other_twins.items():
        for finding in findings(check, run):
            if finding.status != "suspected":
                yield f"fires on the healthy twin of {name}: {finding.status}, {finding.title}"
    for name in sorted(signals_read(check, files.broken) - set(check.needs) - set(check.uses)):
        yield f"reads run.{name} and names it neither in NEEDS nor in USES"
    for signal in check.needs:
        if missing_signal(without(files.broken, signal), check.needs) is None:
            yield f"claims to need {signal}, yet looks when it is missing"
