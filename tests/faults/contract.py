"""What every check must do, whatever its fault: the complaints against one check, none for a good
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
    for signal in check.needs:
        if missing_signal(without(files.broken, signal), check.needs) is None:
            yield f"claims to need {signal}, yet looks when it is missing"
