"""The minimal fix as a diff."""

from __future__ import annotations

from pathlib import Path

from sawbones.report.diff import with_patches
from sawbones.schema import Report


def with_fixes(report: Report, root: Path) -> Report:
    """Diffs where a fix is local and the file is at hand."""
    return with_patches(report, sources_of(report, root))


def sources_of(report: Report, root: Path) -> dict[str, str]:
    """Text of every file that a finding names."""
    found: dict[str, str] = {}
    for finding in (*report.findings, *report.refuted):
        for site in finding.where:
            path = root / site.file
            if site.file not in found and path.is_file():
                found[site.file] = path.read_text(encoding="utf-8", errors="replace")
    return found
