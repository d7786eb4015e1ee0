"""The files that findings name, as text."""

from __future__ import annotations

from pathlib import Path

from sawbones.schema import Report

SOURCE_BYTES = 4 << 20


def sources_of(report: Report, root: Path) -> dict[str, str]:
    """Text of every file that a finding names."""
    found: dict[str, str] = {}
    for finding in (*report.findings, *report.refuted):
        for site in finding.where:
            path = root / site.file
            if site.file not in found and is_source(path):
                found[site.file] = path.read_text(encoding="utf-8", errors="replace")
    return found


def is_source(path: Path) -> bool:
    """A recording may come from a stranger and name any file; a page that is passed on must not
    hold the user's keys because of that.
    """
    try:
        return path.suffix == ".py" and path.is_file() and path.stat().st_size <= SOURCE_BYTES
    except (OSError, ValueError):
        return False
