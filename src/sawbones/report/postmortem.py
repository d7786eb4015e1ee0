"""Report and run -> a postmortem in Markdown, at most 500 words: symptom, timeline, reproduction,
evidence, cause, fix, prevention, and the questions that were left open. Measured things only.
"""

from __future__ import annotations

import shlex

import numpy as np

from sawbones.masking import mask, mask_all, shown_line
from sawbones.report import wording
from sawbones.schema import Finding, Report, Run

MOST_WORDS = 500
MOST_ITEMS = 6


def postmortem(report: Report, run: Run) -> str:
    report = mask_all(report)
    for items in range(MOST_ITEMS, 0, -1):
        text = _written(report, run, items)
        if len(text.split()) <= MOST_WORDS:
            return text
    words = text.split(" ")  # long titles of many findings: the end is what is left out
    return " ".join(words[: MOST_WORDS - 1]).rstrip() + " …\n"


def _written(report: Report, run: Run, items: int) -> str:
    standing = [f for f in report.findings if f.status != "suspected"][:items]
    parts = {
        "Symptom": _symptoms(report, items),
        "Timeline": _timeline(run),
        "Reproduction": _reproduction(run),
        "Evidence": [line for f in standing for line in _evidence(f, items)][:items],
        "Cause": [_cause(f) for f in standing],
        "Fix": [f"{f.fix.summary} ({f.fix.level})" for f in standing if f.fix],
        "Prevention": _prevention(standing, run),
        "Open questions": _open(report, items),
    }
    lines = [f"# Postmortem: {shown_line(report.script)}", "", f"Verdict: {report.verdict}.", ""]
    for title, found in parts.items():
        lines += [f"## {title}", ""]
        lines += [f"- {shown_line(mask(one))}" for one in found] or ["- not known"]
        lines.append("")
    return "\n".join(lines)


def _symptoms(report: Report, items: int) -> list[str]:
    found = sorted(report.symptoms, key=lambda seen: seen.cls != "ill")
    return [wording.symptom(seen) for seen in found[:items]] or [wording.headline(report)]


def _timeline(run: Run) -> list[str]:
    losses = np.asarray(run.losses, np.float64)
    lines = []
    if len(losses):
        steps = np.asarray(run.steps["step"]).astype(int)
        lines.append(f"step {steps[0]}: loss {wording.number(float(losses[0]))}")
        finite = np.flatnonzero(np.isfinite(losses))
        if len(finite):
            low = finite[np.argmin(losses[finite])]
            lines.append(f"step {steps[low]}: lowest loss, {wording.number(float(losses[low]))}")
        bad = np.flatnonzero(~np.isfinite(losses))
        if len(bad):
            lines.append(f"step {steps[bad[0]]}: the first loss that is not finite")
        lines.append(f"step {steps[-1]}: loss {wording.number(float(losses[-1]))}")
    ending = run.ending.exception or run.ending.kind
    message = f": {run.ending.message}" if run.ending.message else ""
    return [*lines, f"after {wording.duration(run.seconds)}: {ending}{message}"]


def command(run: Run) -> str:
    return shlex.join(["python", run.script, *run.argv])


def _reproduction(run: Run) -> list[str]:
    seeds = [event.site.code for event in run.of_kind("seed") if event.site is not None]
    known = [f"{name} {run.environment[name]}" for name in VERSIONS if run.environment.get(name)]
    return [
        f"`{command(run)}`",
        f"seed: {'; '.join(dict.fromkeys(seeds))}" if seeds else "no seed was set",
        f"{', '.join(known)}; {run.num_steps} steps",
    ]


VERSIONS = ("python", "torch", "numpy", "cuda")


def _evidence(finding: Finding, items: int) -> list[str]:
    lines = []
    for one in finding.evidence[:items]:
        numbers = wording.measured(one)
        lines.append(one.text + (f" ({numbers})" if numbers else ""))
    if finding.verdict is not None:
        lines.append(f"experiment: {finding.verdict.result}")
    return lines


def _cause(finding: Finding) -> str:
    place = finding.where[0] if finding.where else None
    where = f", {place.file}:{place.line}: `{place.code}`" if place is not None else ""
    return f"{finding.title} ({finding.fault}, {finding.status}){where}"


def _prevention(standing: list[Finding], run: Run) -> list[str]:
    if not standing:
        return []
    return [f"a regression test: sawbones pin {run.folder or 'RUN'}"] + [
        f"sawbones explain {one.fault}" for one in standing
    ]


def _open(report: Report, items: int) -> list[str]:
    lines = [f"{s.symptom}: nothing found explains it" for s in report.symptoms if s.stands]
    lines += [
        f"{f.fault} is suspected, not decided: {f.title}"
        for f in report.findings
        if f.status == "suspected"
    ]
    lines += list(report.notes)
    if report.could_not_look:
        lines.append(f"{len(report.could_not_look)} faults could not be looked for")
    return lines[:items] or ["none"]
