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
    silent = [fault.removeprefix(KIND) for fault in reading.silent if fault.startswith(KIND)]
    refused = {kind: why for kind in silent if (why := _refused(run, kind))}
    tried = [f"{kind} (in part)" if kind in refused else kind for kind in silent]
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
    tail += "".join(f"; no trial for {kind}: {why}" for kind, why in refused.items())
    return f"{said}{tail}{asked}"


def _refused(run: Run, kind: str) -> str:
    """Why the trial of this kind could not decide, although its check found nothing; else empty."""
    told = run.source_change
    trials = {"preprocessing": (told.features,), "target": (told.labels,)}.get(kind, ())
    apart = {"group": "group", "temporal": "time"}.get(kind)
    tried = (*trials, *(t for t in run.strangers if t.kind == apart))
    return next((t.why.partition(". ")[0] for t in tried if t.outcome == "refused"), "")


def _question(run: Run) -> str:
    """One column carries the answer, and nothing says whether it may."""
    column = run.populations.column
    if column is None:
        return ""
    return (
        f". Input column {column.column} alone carries the answer (accuracy "
        f"{column.score:.2f}, {column.scrambled:.2f} with it scrambled): is it known before "
        "the event?"
    )
