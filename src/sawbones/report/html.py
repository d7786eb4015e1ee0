"""Report + Run -> one HTML file that opens without a network.

plotly.js, the style sheet and the figures are all inside. The page allows only its own two scripts
to run, by their hashes: should a text of the user's ever slip through unescaped, the browser still
refuses to execute it.
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
    escape,
    findings_section,
    ruled_out_section,
)
from sawbones.report.html_run import environment_section, run_sections
from sawbones.schema import Report, Run
from sawbones.schema.errors import SawbonesError

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


class PlotlyMissing(SawbonesError):
    """The HTML report needs the extra `html`."""


def write_html(
    report: Report,
    run: Run | None,
    path: str | os.PathLike[str],
    sources: Mapping[str, str] | None = None,
) -> None:
    """Write the page. `sources` (file -> text) gives the excerpts and the diffs; without a run
    there are no plots.
    """
    plotly = _plotly()
    # As a whole: a private key spans lines.
    texts = {name: mask(text) for name, text in (sources or {}).items()}
    plots: dict[str, Figure] = {}
    sections = [findings_section(report, texts)]
    sections += run_sections(run, report, plots) if run is not None else []
    sections += [
        ruled_out_section(report),
        coverage_section(report),
        environment_section(report, run),
    ]
    body = f"{_header(report, run)}\n{_links(sections)}\n<main>{''.join(sections)}</main>"
    # A file name or a line may hold lone surrogates, which UTF-8 refuses.
    Path(path).write_text(
        _page(report, body, plotly, plots), encoding="utf-8", errors="backslashreplace"
    )


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise PlotlyMissing(
            'the HTML report needs plotly, which is not installed: pip install "sawbones[html]"'
        ) from error
    return str(get_plotlyjs())


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


def _page(report: Report, body: str, plotly: str, plots: Mapping[str, Figure]) -> str:
    script = (files("sawbones.report") / "page.js").read_text(encoding="utf-8")
    style = (files("sawbones.report") / "page.css").read_text(encoding="utf-8")
    # A page without plots doesn't carry five megabytes for nothing.
    scripts = [plotly, script] if plots else []
    allowed = " ".join(f"'{_hash(text)}'" for text in scripts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: "
        "blob:; font-src data:"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(shown_line(f'{report.script}: {report.verdict}'))} · Sawbones</title>"
        f"<style>{style}</style></head>\n<body>{body}\n"
        f'<script type="application/json" id="figures">{_embedded(plots)}</script>\n'
        + "".join(f"<script>{text}</script>\n" for text in scripts)
        + "</body></html>\n"
    )


def _hash(script: str) -> str:
    # The parser turns CR LF into LF before the browser hashes, so the text must hold none; plotly's
    # is plain LF.
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _embedded(value: Any) -> str:
    """JSON that can stand inside a script element: `</script>` in a text must not end it."""
    return (
        mask_json(json.dumps(value, allow_nan=False, separators=(",", ":")))
        .replace("<", "\\u003c")
        .replace("&", "\\u0026")
    )
