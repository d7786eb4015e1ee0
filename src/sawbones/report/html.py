"""Report + Run -> one HTML file that opens without a network.

The style sheet, the drawing code and the figures are all inside. The page allows only its own
script to run, by its hash: should a text of the user's ever slip through unescaped, the browser
still refuses to execute it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from sawbones.masking import mask, mask_json, shown_line
from sawbones.report import wording
from sawbones.report.figures import Figure
from sawbones.report.html_findings import (
    coverage_section,
    findings_section,
    ruled_out_section,
)
from sawbones.report.html_parts import escape
from sawbones.report.html_run import environment_section, run_sections
from sawbones.schema import Report, Run

SECTION_NAMES = {
    "findings": "Findings",
    "crash": "Crash",
    "curves": "Curves",
    "layers": "Layers",
    "step": "One step",
    "dependence": "Influence",
    "ruled-out": "Ruled out",
    "coverage": "Coverage",
    "environment": "Environment",
}


def write_html(
    report: Report,
    run: Run | None,
    path: str | os.PathLike[str],
    sources: Mapping[str, str] | None = None,
) -> None:
    """Write the page. `sources` (file -> text) gives the excerpts and the diffs; without a run
    there are no plots.
    """
    # As a whole: a private key spans lines.
    texts = {name: mask(text) for name, text in (sources or {}).items()}
    plots: dict[str, Figure] = {}
    sections = [findings_section(report, texts, plots)]
    sections += run_sections(run, report, plots) if run is not None else []
    sections += [
        ruled_out_section(report, plots),
        coverage_section(report),
        environment_section(report, run),
    ]
    content = "".join(sections)
    body = f'{_header(report, run)}\n{_links(sections)}\n<main id="content">{content}</main>'
    # A file name or a line may hold lone surrogates, which UTF-8 refuses.
    Path(path).write_text(_page(report, body, plots), encoding="utf-8", errors="backslashreplace")


def _header(report: Report, run: Run | None) -> str:
    facts = [wording.plural(report.steps, "step"), wording.duration(report.seconds)]
    if report.findings:
        facts.append(wording.statuses(report))
    if run is not None and run.world_size > 1:
        facts.append(wording.plural(run.world_size, "process", "processes"))
    cost = _watching_share(run)
    if cost is not None:
        facts.append(f"watching took {100 * cost:.1f} % of the step time")
    causes = "".join(
        f'<li><a href="#finding-{number}"><span class="badge '
        f'{escape(finding.status)}">{escape(finding.status)}</span>'
        f'<span class="cause">{escape(finding.title)}'
        f"<small>{escape(wording.place(finding, report.script))}</small></span></a></li>"
        for number, finding in enumerate(report.findings, start=1)
    )
    silence = (
        ""
        if report.findings
        else f"<p>{escape(wording.looked_at(report).capitalize())}.{_blind(report)}</p>"
    )
    learned = f"<p>{escape(report.progress)}</p>" if report.verdict == "healthy" else ""
    silence = _symptoms(report) + learned + silence
    return (
        f'<header class="{escape(report.verdict)}"><p class="brand">Sawbones '
        f'<span class="quiet">{escape(report.script)}</span></p>'
        "<h1><span "
        f'class="verdict">{escape(report.verdict)}</span>{escape(wording.headline(report))}</h1>'
        f'<p class="quiet">{escape(" · ".join(facts))}</p>{silence}{f"<ol>{causes}</ol>" if causes else ""}</header>'
    )


def _symptoms(report: Report) -> str:
    rows = "".join(
        f"<li><code>{escape(symptom.symptom)}</code> {escape(wording.symptom(symptom))}</li>"
        for symptom in report.symptoms
    )
    return f'<ul class="plain-list">{rows}</ul>' if rows else ""


def _blind(report: Report) -> str:
    count = len(report.could_not_look)
    return (
        f' <a href="#coverage">{wording.plural(count, "check")} could not look.</a>'
        if count
        else ""
    )


def _watching_share(run: Run | None) -> float | None:
    if run is None or "watch_ms" not in run.steps or "step_ms" not in run.steps:
        return None
    watch, step = run.steps["watch_ms"], run.steps["step_ms"]
    known = (watch >= 0) & (step > 0)
    return float(watch[known].sum() / step[known].sum()) if known.any() else None


def _links(sections: list[str]) -> str:
    present = [
        name
        for name in SECTION_NAMES
        if any(f'<section id="{name}"' in section for section in sections)
    ]
    links = "".join(f'<a href="#{name}">{SECTION_NAMES[name]}</a>' for name in present)
    return f'<nav aria-label="Sections">{links}</nav>'


DRAWING = ("draw.js", "draw_curves.js", "draw_maps.js")


def asset(*names: str) -> str:
    """Files of this folder, one behind the other."""
    folder = files("sawbones.report")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def _page(report: Report, body: str, plots: Mapping[str, Figure]) -> str:
    script = asset(*DRAWING, "page.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(shown_line(f'{report.script}: {report.verdict}'))} · Sawbones</title>"
        f"<style>{asset('page.css')}</style></head>\n<body>"
        f'<a class="skip" href="#content">to the content</a>{body}\n'
        f'<script type="application/json" id="figures">{_embedded(plots)}</script>\n'
        f"<script>{script}</script>\n</body></html>\n"
    )


def _hash(script: str) -> str:
    # The parser turns CR LF into LF before the browser hashes, so the text must hold none.
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _embedded(value: Any) -> str:
    """JSON that can stand inside a script element: `</script>` in a text must not end it."""
    return (
        mask_json(json.dumps(value, allow_nan=False, separators=(",", ":")))
        .replace("<", "\\u003c")
        .replace("&", "\\u0026")
    )
