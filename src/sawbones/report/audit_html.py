"""The report of a data audit -> one HTML file without a script: findings, distributions side by
side, thresholds, coverage.

Reads the report alone: `environment["audit"]` and the findings' `params` carry the counts that are
drawn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from sawbones.masking import shown_line
from sawbones.report import wording
from sawbones.report.html_findings import coverage_section, findings_section
from sawbones.report.html_parts import escape
from sawbones.schema import Report

COLOURS = ("--line0", "--line1", "--line2", "--line3")
WIDTH, HEIGHT, FLOOR = 420, 120, 104
SECTIONS = (
    ("findings", "Findings"),
    ("distributions", "Distributions"),
    ("examples", "Rows"),
    ("setting", "Data and thresholds"),
    ("coverage", "Coverage"),
)


def write_audit_html(report: Report, path: str | os.PathLike[str]) -> None:
    facts = report.environment.get("audit")
    facts = facts if isinstance(facts, Mapping) else {}
    sections = [
        findings_section(report, {}),
        _distributions(report, facts),
        _examples(report),
        _setting(facts),
        coverage_section(report),
    ]
    body = f"{_header(report, facts)}\n{_links(sections)}\n<main>{''.join(sections)}</main>"
    Path(path).write_text(_page(report, body), encoding="utf-8", errors="backslashreplace")


def _header(report: Report, facts: Mapping[str, Any]) -> str:
    said = [
        f"audit of {facts.get('command', 'data')}",
        wording.extent(report),
        wording.duration(report.seconds),
    ]
    if report.findings:
        said.append(wording.statuses(report))
    causes = "".join(
        f'<li><a href="#finding-{number}"><span class="badge '
        f'{escape(f.status)}">{escape(f.status)}</span>'
        f'<span class="cause">{escape(f.title)}<small>{escape(f.fault)}</small></span></a></li>'
        for number, f in enumerate(report.findings, start=1)
    )
    silence = "" if report.findings else f"<p>{escape(wording.looked_at(report).capitalize())}.</p>"
    return (
        f'<header class="{escape(report.verdict)}"><p class="brand">Sawbones <span '
        f'class="quiet">{escape(report.script)}</span></p>'
        "<h1><span "
        f'class="verdict">{escape(report.verdict)}</span>{escape(wording.headline(report))}</h1>'
        f'<p class="quiet">{escape(" · ".join(said))}</p>{silence}{f"<ol>{causes}</ol>" if causes else ""}</header>'
    )


def _links(sections: Sequence[str]) -> str:
    present = [
        (name, text)
        for name, text in SECTIONS
        if any(f'<section id="{name}"' in section for section in sections)
    ]
    return f'<nav aria-label="Sections">{"".join(f"<a href=#{name}>{text}</a>" for name, text in present)}</nav>'


def _page(report: Report, body: str) -> str:
    style = (files("sawbones.report") / "page.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta '
        'name="viewport" content="width=device-width, '
        'initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><meta '
        'name="color-scheme" content="light dark">'
        f"<title>{escape(shown_line(f'{report.script}: {report.verdict}'))} · Sawbones</title>"
        f"<style>{style}</style></head>\n<body>{body}\n</body></html>\n"
    )


def _distributions(report: Report, facts: Mapping[str, Any]) -> str:
    """Those of the findings first, then the others as they were measured; each column once."""
    drawn: dict[tuple[str, str], str] = {}
    own = [f.params.get("distribution") for f in report.findings]
    for one in [*own, *facts.get("distributions", ())]:
        if isinstance(one, Mapping) and one.get("bins"):
            drawn.setdefault((str(one["column"]), str(one["names"])), _panel(one))
    if not drawn:
        return ""
    return (
        '<section id="distributions"><h2>Distributions</h2><div '
        f'class="panels">{"".join(drawn.values())}</div></section>'
    )


def _panel(one: Mapping[str, Any]) -> str:
    measured = [
        f"{name.upper()} {one[name]:.3f}"
        for name in ("ks", "psi", "js")
        if isinstance(one.get(name), (int, float))
    ]
    badge = ' <span class="badge likely">moved</span>' if one.get("moved") else ""
    key = "".join(
        f'<span><i class="swatch" style="background:var({COLOURS[i % 4]})"></i>{escape(name)}, '
        f"{wording.plural(int(sum(counts)), 'row')}</span>"
        for i, (name, counts) in enumerate(zip(one["names"], one["counts"], strict=True))
    )
    return (
        f'<div class="panel"><h3>{escape(one["column"])}{badge}</h3><p '
        f'class="quiet">{escape(" · ".join(measured)) or "share of the rows"}</p>'
        f'{_bars(one)}<p class="key">{key}</p></div>'
    )


def _bars(one: Mapping[str, Any]) -> str:
    bins = list(one["bins"])
    sides = [_shares(counts) for counts in one["counts"]]
    top = max((max(side, default=0.0) for side in sides), default=0.0) or 1.0
    step = WIDTH / len(bins)
    width = max(0.6, step * 0.86 / len(sides))
    shapes = []
    for i, name in enumerate(bins):
        for j, side in enumerate(sides):
            height = FLOOR * side[i] / top
            title = f"{name}: {100 * side[i]:.2f} % of {one['names'][j]}"
            shapes.append(
                f'<rect x="{i * step + step * 0.07 + j * width:.1f}" '
                f'y="{FLOOR - height:.1f}" width="{width:.1f}" '
                f'height="{height:.1f}" '
                f'style="fill:var({COLOURS[j % 4]})"><title>{escape(title)}</title></rect>'
            )
    ends = (
        f'<text x="0" y="{HEIGHT - 3}">{escape(_clipped(bins[0]))}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 3}" text-anchor="end">{escape(_clipped(bins[-1]))}</text>'
    )
    label = escape(f"{one['column']}: {' and '.join(map(str, one['names']))} side by side")
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" class="plot" role="img" aria-label="{label}" '
        f'style="font-size:10px;fill:var(--muted)">'
        f'<line x1="0" x2="{WIDTH}" y1="{FLOOR}" y2="{FLOOR}" '
        f'style="stroke:var(--grid)"/>{"".join(shapes)}{ends}</svg>'
    )


def _shares(counts: Sequence[float]) -> list[float]:
    total = float(sum(counts)) or 1.0
    return [float(n) / total for n in counts]


def _clipped(text: str, most: int = 24) -> str:
    text = str(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _examples(report: Report) -> str:
    parts = []
    for number, finding in enumerate(report.findings, start=1):
        examples = finding.params.get("examples")
        if isinstance(examples, (list, tuple)) and examples:
            rows = "".join(f"<li><code>{escape(text)}</code></li>" for text in examples)
            parts.append(
                f"<details><summary>{number} · {escape(finding.title)}</summary><ul "
                f'class="plain-list">{rows}</ul></details>'
            )
    return f'<section id="examples"><h2>Rows</h2>{"".join(parts)}</section>' if parts else ""


def _setting(facts: Mapping[str, Any]) -> str:
    splits = "".join(
        f"<tr><th>{escape(s['role'])}</th><td>{escape(s['origin'])}</td><td "
        f"class='num'>{s['rows']:,}</td><td "
        f"class='num'>{s['columns']}</td></tr>"
        for s in facts.get("splits", ())
    )
    limits = "".join(
        f"<tr><th>{escape(name)}</th><td>{wording.number(value)}</td></tr>"
        for name, value in facts.get("thresholds", {}).items()
    )
    return (
        '<section id="setting"><h2>Data and '
        "thresholds</h2><table><thead><tr><th>split</th><th>read from</th><th "
        'class="num">rows</th>'
        f'<th class="num">columns</th></tr></thead><tbody>{splits}</tbody></table><p '
        'class="quiet">Engine: '
        f"{escape(facts.get('engine', '?'))}</p>"
        "<details><summary>Thresholds</summary><table "
        f'class="facts"><tbody>{limits}</tbody></table></details></section>'
    )
