"""One line on leaks where none was found: which kinds were tried, and which could not be."""

from __future__ import annotations

from collections.abc import Iterable

from sawbones.faults import Reading
from sawbones.schema import Finding, Run
from sawbones.schema.signals import missing_signal

KIND = "evaluation.leak-"


def leaks_line(run: Run, reading: Reading, findings: Iterable[Finding]) -> str:
    """Empty where a leak was found, or where nothing was evaluated that could be too good."""
    if missing_signal(run, ("validation",)) or any(f.fault.startswith(KIND) for f in findings):
        return ""
    tried = [fault.removeprefix(KIND) for fault in reading.silent if fault.startswith(KIND)]
    blind = [
        f"{missed.fault.removeprefix(KIND)} ({missed.why.partition('. ')[0]})"
        for missed in reading.could_not_look
        if missed.fault.startswith(KIND)
    ]
    if not tried and not blind:
        return ""
    asked = _question(run)
    said = f"no leak of these kinds: {', '.join(tried)}" if tried else "no kind of leak was tried"
    tail = f"; not tried: {', '.join(blind)}" if blind else ""
    return f"{said}{tail}{asked}"


def _question(run: Run) -> str:
    """One column carries the answer, and nothing says whether it may."""
    column = (run.facts.get("populations") or {}).get("column")
    if column is None:
        return ""
    return (
        f". Input column {column['column']} alone carries the answer (accuracy "
        f"{column['score']:.2f}, {column['scrambled']:.2f} with it scrambled): is it known before "
        "the event?"
    )
