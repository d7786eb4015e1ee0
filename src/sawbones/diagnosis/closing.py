"""The lines after a recorded run: how it went, what was found, what to do next."""

from __future__ import annotations

from pathlib import Path

from sawbones.diagnosis.accepted import accepted_by
from sawbones.diagnosis.engine import diagnose_run
from sawbones.masking import shown_line
from sawbones.report.summary import labelled, near, run_summary
from sawbones.schema import Finding, Run
from sawbones.stats.crash_account import account
from sawbones.store import read_run


def closing_lines(folder: Path, limit_mb: float) -> list[str]:
    recorded = read_run(folder)
    accepted = accepted_by(Path(recorded.script).absolute().parent)
    report = diagnose_run(recorded, accepted=accepted).report
    *lines, folder_line, next_line = run_summary(recorded, report.symptoms).split("\n")
    for finding in report.findings:
        if finding.status != "suspected":
            where = f" {finding.where[0]}" if finding.where else ""
            lines.append(f"  found      {finding.fault} ({finding.status}){where}")
            lines += labelled("", shown_line(finding.title))
            lines += _explained(finding)
    if not any(f.explanation is not None for f in report.findings):
        lines += [line for said in account(recorded) for line in labelled("", shown_line(said))]
    captured = captured_lines(recorded)
    if captured:
        captured.append(
            f"             kept under {limit_mb:g} MB; to change that: --capture-limit MB"
        )
    return [*lines, *captured, folder_line, next_line]


def captured_lines(run: Run) -> list[str]:
    lines = []
    for bundle in run.bundles:
        lines += labelled("captured", shown_line(bundle.text))
        lines.append(f"             sawbones replay {near(bundle.path)}")
    return lines


def _explained(finding: Finding) -> list[str]:
    """Why the script crashed, in a few lines."""
    told = finding.explanation
    if told is None:
        return []
    advice = finding.fix.summary if finding.fix is not None else ""
    said = (
        ("expected", told.expected),
        ("got", told.got),
        ("because", told.because),
        ("try", advice),
    )
    return [
        line for name, text in said if text for line in labelled("", f"{name}: {shown_line(text)}")
    ]
