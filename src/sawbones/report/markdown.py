"""Report -> Markdown: the summary page of a CI job, or a comment under a pull request."""

from __future__ import annotations

import re

from sawbones.masking import mask_all, masked_text, shown, shown_line
from sawbones.report import wording
from sawbones.report.masked import masked_in
from sawbones.schema import Finding, Report

SIGNS = {
    "healthy": "✅",
    "sick": "❌",
    "unexplained": "❌",
    "crashed": "💥",
    "inconclusive": "⚠️",
}
MOST_DIFF_LINES = 60


def to_markdown(report: Report) -> str:
    masked = masked_text(masked_in(report))
    report = mask_all(report)
    facts = (
        f"`{_code(report.script)}`",
        wording.extent(report),
        wording.duration(report.seconds),
    )
    sign = SIGNS.get(report.verdict, "")
    lines = [f"## {sign} {report.verdict}: {_plain(wording.headline(report))}", ""]
    lines += [" · ".join(facts), ""]
    lines += [f"- {_plain(wording.symptom(symptom))}" for symptom in report.symptoms]
    lines += [""] if report.symptoms else []
    if report.findings:
        lines += ["| fault | status | where | what |", "|---|---|---|---|"]
        lines += [_row(finding, report) for finding in report.findings]
        lines.append("")
        for finding in report.findings:
            lines += _details(finding)
    lines += [f"> {_plain(note)}" for note in report.notes]
    lines += ["", f"Masked: {_plain(masked)}"] if masked else []
    looked = f"{wording.plural(len(report.looked), 'other fault')} looked for and not found"
    blind = f"{len(report.could_not_look)} could not be looked for"
    lines += ["", f"<sub>{looked}; {blind}.</sub>", ""]
    return "\n".join(lines)


def _row(finding: Finding, report: Report) -> str:
    cells = (
        f"`{_code(finding.fault)}`",
        finding.status,
        f"`{_code(wording.place(finding, report.script))}`",
        _plain(finding.title),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _details(finding: Finding) -> list[str]:
    lines = ["<details>", f"<summary>{_plain(finding.fault)}: evidence and fix</summary>", ""]
    for evidence in finding.evidence:
        numbers = wording.measured(evidence)
        lines.append(f"- {_plain(evidence.text)}" + (f" ({numbers})" if numbers else ""))
    if finding.verdict is not None:
        lines.append(f"- Experiment: {_plain(finding.verdict.result)}")
    if finding.fix is not None:
        lines += ["", f"**Fix**: {_plain(finding.fix.summary)} ({finding.fix.level})"]
        if finding.fix.patch:
            lines += ["", *_diff(finding.fix.patch)]
    return [*lines, "", "</details>", ""]


def _diff(patch: str) -> list[str]:
    shown_lines = shown(patch).rstrip("\n").splitlines()
    left = len(shown_lines) - MOST_DIFF_LINES
    # The fence is longer than any run of backticks inside, so that no source line can end it.
    longest = max((len(run) for run in re.findall(r"`+", patch)), default=0)
    fence = "`" * max(3, longest + 1)
    more = [f"… {left} more lines"] if left > 0 else []
    return [f"{fence}diff", *shown_lines[:MOST_DIFF_LINES], *more, fence]


def _plain(text: str) -> str:
    """Text as text: nothing in it is read as Markdown or HTML."""
    line = shown_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]#|])", r"\\\1", line)


def _code(text: str) -> str:
    return shown_line(text).replace("`", "'")
