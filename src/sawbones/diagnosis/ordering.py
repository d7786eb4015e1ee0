"""Causes before consequences: which findings stand, and in which order.

Each check declares under EXPLAINS the faults whose signs it brings about. A finding that a better
or equally supported finding explains is not shown on its own; its evidence is added to the cause.
What says only that a run does not repeat stands below every likely or proven finding that acts.
"""

from __future__ import annotations

from dataclasses import replace

from sawbones.faults import all_checks
from sawbones.schema import LAYERS, Evidence, Finding
from sawbones.schema.finding import STATUSES
from sawbones.symptoms import only_unrepeatable


def explained_by(fault: str) -> set[str]:
    return {check.fault for check in all_checks() if fault in check.explains}


def settle(findings: list[Finding]) -> tuple[list[Finding], list[Finding]]:
    """(what stands, in order; what was folded into a cause)."""
    causes = {check.fault: set(check.explains) for check in all_checks()}
    merged = _one_per_fault(findings)
    # Two that explain each other: the better one stands, of two equal ones the first, never
    # neither.
    place = {finding.fault: number for number, finding in enumerate(sorted(merged, key=_key))}
    standing: list[Finding] = []
    folded: list[Finding] = []
    for finding in merged:
        above = [
            other
            for other in merged
            if other is not finding
            and finding.fault in causes.get(other.fault, ())
            and _rank(other) >= min(_rank(finding), STATUSES.index("likely"))
            and not (
                other.fault in causes.get(finding.fault, ())
                and place[finding.fault] < place[other.fault]
            )
        ]
        if above:
            folded.append(finding)
        else:
            standing.append(finding)
    result = [
        _with_consequences(f, [c for c in folded if c.fault in causes.get(f.fault, ())])
        for f in standing
    ]
    return sorted(result, key=_key), folded


def _rank(finding: Finding) -> int:
    return STATUSES.index(finding.status)


def acts(finding: Finding) -> bool:
    """It changes what is learned or measured; that two runs differ explains nothing in either."""
    return finding.fault not in only_unrepeatable()


def _key(finding: Finding) -> tuple[bool, bool, bool, int, float, int]:
    return (
        not _ended_the_run(finding),
        finding.status == "suspected",
        not acts(finding),
        -_rank(finding),
        -_support(finding),
        LAYERS.index(finding.fault.split(".")[0]),
    )


def _ended_the_run(finding: Finding) -> bool:
    """It explains the exception that ended the run: nothing stands above it but its own cause."""
    return finding.explanation is not None or (
        finding.status != "suspected"
        and any(e.signal == "crash" and e.kind in ("refused", "exact") for e in finding.evidence)
    )


# Which of two equally sure findings stands first: the one that needs less belief.
_SUPPORT = {"exact": 0.97, "refused": 0.95, "counted": 0.9, "compared": 0.85}


def _support(finding: Finding) -> float:
    kinds = [e.kind for e in finding.evidence if e.kind and e.strength == "clear"]
    if kinds:
        return max(_SUPPORT[kind] for kind in kinds)
    return round(finding.confidence, 2)


def _one_per_fault(findings: list[Finding]) -> list[Finding]:
    best: dict[str, Finding] = {}
    for finding in sorted(findings, key=_key):
        if finding.fault not in best:
            best[finding.fault] = finding
        else:
            kept = best[finding.fault]
            places = kept.where + tuple(s for s in finding.where if s not in kept.where)
            best[finding.fault] = replace(kept, where=places[:6])
    return list(best.values())


def _with_consequences(cause: Finding, consequences: list[Finding]) -> Finding:
    told = {
        f"consequence: {c.title}": c for c in reversed(consequences)
    }  # several checks may say the same of one symptom
    known = {e.text for e in cause.evidence}  # what was settled before is settled once more
    extra = tuple(
        replace(c.evidence[0], text=text) if c.evidence else Evidence(text)
        for text, c in reversed(told.items())
        if text not in known
    )
    return replace(cause, evidence=cause.evidence + extra) if extra else cause
