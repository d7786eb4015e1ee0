"""What every check must do, whatever its fault: the complaints against one check, none for a good
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sawbones.evidence import NothingToJudge
from sawbones.faults import Check
from sawbones.schema import Finding, Run
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


# What Run itself reads of its facts, and what a signal of another name stands for.
OF_RUN = {"events_in_full"}


class Noted(dict[str, Any]):
    """Facts that remember what was asked of them."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        super().__init__(facts)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)


def facts_read(check: Check, run: Run) -> set[str]:
    noted = Noted(run.facts)
    findings(check, replace(run, facts=noted))
    for fact in run.facts:  # by the signal's own removal: its name may be another one
        if any(fact not in without(run, signal).facts for signal in check.needs):
            noted.asked.discard(fact)
    return noted.asked - OF_RUN


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
    for fact in sorted(facts_read(check, files.broken) - set(check.needs) - set(check.uses)):
        yield f"reads run.facts[{fact!r}] and names it neither in NEEDS nor in USES"
    for signal in check.needs:
        if missing_signal(without(files.broken, signal), check.needs) is None:
            yield f"claims to need {signal}, yet looks when it is missing"
