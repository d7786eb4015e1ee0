"""Report -> workflow commands of GitHub Actions: one annotation at the line of each finding."""

from __future__ import annotations

from pathlib import PurePosixPath

from sawbones.masking import mask_all, shown
from sawbones.report import wording
from sawbones.schema import Finding, Report

MOST_EVIDENCE = 3
LEVELS = {"proven": "error", "likely": "error", "suspected": "notice"}


def to_annotations(report: Report, folder: str = "") -> list[str]:
    """One line each, findings first. `folder`: where the report's paths begin, seen from the root
    of the repository; annotations are shown only at paths from there.
    """
    report = mask_all(report)
    lines = [_of_finding(finding, report, folder) for finding in report.findings]
    for symptom in report.symptoms:
        if symptom.stands:
            title = f"sawbones: {symptom.symptom}"
            lines.append(_command("error", symptom.text, _path(report.script, folder), title=title))
    if not lines and report.verdict in ("crashed", "inconclusive"):
        level = "error" if report.verdict == "crashed" else "warning"
        told = "\n".join((wording.headline(report), *report.notes))
        title = f"sawbones: {report.verdict}"
        lines.append(_command(level, told, _path(report.script, folder), title=title))
    return lines


def _of_finding(finding: Finding, report: Report, folder: str) -> str:
    told = [finding.title, *(e.text for e in finding.evidence[:MOST_EVIDENCE])]
    told += [f"Fix: {finding.fix.summary}"] if finding.fix is not None else []
    told.append(f"More: sawbones explain {finding.fault}")
    site = finding.where[0] if finding.where else None
    return _command(
        LEVELS.get(finding.status, "notice"),
        "\n".join(told),
        _path(site.file if site else report.script, folder),
        line=site.line if site else None,
        title=f"{finding.fault} ({finding.status})",
    )


def _path(file: str, folder: str) -> str:
    path = PurePosixPath(file.replace("\\", "/"))
    return str(PurePosixPath(folder) / path)  # an absolute path stays as it is


def _command(level: str, text: str, file: str, title: str, line: int | None = None) -> str:
    place = [f"file={_property(file)}"]
    place += [f"line={line}"] if line else []
    place.append(f"title={_property(title)}")
    return f"::{level} {','.join(place)}::{_data(shown(text))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
