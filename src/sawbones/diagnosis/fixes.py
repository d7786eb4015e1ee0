"""The minimal fix as a diff, and the regression test that keeps the fault out."""

from __future__ import annotations

from pathlib import Path

from sawbones.report.diff import with_patches
from sawbones.schema import Finding, Report


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


def regression_test(finding: Finding, script: str) -> str:
    """Fails while the fault is in the script and passes once it is gone."""
    name = finding.fault.replace(".", "_").replace("-", "_")
    place = f"  # {finding.where[0]}" if finding.where else ""
    return (
        f'"""{finding.title}"""\n\n'
        "import sawbones\n\n\n"
        f"def test_{name}_stays_out():{place}\n"
        f"    report = sawbones.diagnose({script!r}, only={finding.fault!r}).report\n"
        "    assert [f.title for f in report.findings if f.status != 'suspected'] == []\n"
    )
