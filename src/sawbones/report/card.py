"""Report + Run -> a small picture for the output of a notebook cell: verdict, loss, findings.

Plain HTML and SVG with their own style: a notebook runs no script of an output that it does not
trust, and has colours of its own.
"""

from __future__ import annotations

from sawbones.masking import mask, shown_line
from sawbones.report import series, wording
from sawbones.report.html_parts import escape
from sawbones.schema import Finding, Report, Run

WIDTH, HEIGHT, MARGIN = 360, 64, 4
MOST_FINDINGS, MOST_SYMPTOMS = 5, 3
COLOURS = {"sick": "#c0392b", "crashed": "#c0392b", "unexplained": "#b9770e", "healthy": "#1e8449"}
OTHER_COLOUR = "#707b7c"


def card(report: Report, run: Run) -> str:
    colour = COLOURS.get(report.verdict, OTHER_COLOUR)
    counted = f"{wording.plural(report.steps, 'step')} · {wording.duration(run.seconds)}"
    head = (
        f'<div><b style="color:{colour}">{escape(report.verdict.upper())}</b> '
        f'{escape(wording.headline(report))} <span style="opacity:.65">{escape(counted)}</span></div>'
    )
    rows = [_symptom_row(s.symptom, s.text) for s in report.symptoms[:MOST_SYMPTOMS]]
    rows += [_finding_row(finding) for finding in report.findings[:MOST_FINDINGS]]
    left = len(report.findings) - MOST_FINDINGS
    rows += [f"<div>and {left} more</div>"] if left > 0 else []
    foot = f'<div style="opacity:.65">{escape(shown_line(str(run.folder)))}</div>'
    return mask(
        f'<div style="font:13px/1.5 system-ui,sans-serif;border-left:3px solid {colour};'
        f'padding:2px 10px;max-width:720px">{head}{loss_picture(run)}{"".join(rows)}{foot}</div>'
    )


def _symptom_row(name: str, text: str) -> str:
    return f"<div><code>{escape(name)}</code> {escape(shown_line(text))}</div>"


def _finding_row(finding: Finding) -> str:
    where = f" <code>{escape(finding.where[0])}</code>" if finding.where else ""
    fix = f"<br>fix: {escape(shown_line(finding.fix.summary))}" if finding.fix else ""
    return (
        f"<div><b>{escape(finding.fault)}</b> {escape(finding.status)}{where}<br>"
        f"{escape(shown_line(finding.title))}{fix}</div>"
    )


def loss_picture(run: Run) -> str:
    """The loss of every optimizer as a line; crosses along the top where it is not finite."""
    found = series.curves(run, "loss")
    known = [value for line in found for value in line.values if value is not None]
    if not known and not any(line.broken for line in found):
        return ""
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    first = min(step for line in found for step in line.steps)
    last = max(step for line in found for step in line.steps)

    def across(step: float) -> float:
        return MARGIN + (WIDTH - 2 * MARGIN) * (step - first) / max(last - first, 1)

    def down(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share

    shapes = []
    for line in found:
        for piece in _pieces(line):
            points = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in piece)
            shapes.append(
                f'<polyline points="{points}" fill="none" stroke="#2471a3" stroke-width="1.4"/>'
            )
        for group in line.broken:
            shapes += [_cross(across(step), group.kind) for step in group.steps]
    label = f"loss {wording.number(known[0])} to {wording.number(known[-1])}" if known else "loss"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(label)}" style="display:block">{"".join(shapes)}</svg>'
        f'<div style="opacity:.65">{escape(label)}</div>'
    )


def _pieces(line: series.Curve) -> list[list[tuple[int, float]]]:
    """A value that is missing breaks the line."""
    pieces: list[list[tuple[int, float]]] = [[]]
    for step, value in zip(line.steps, line.values, strict=True):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((step, value))
    return [piece for piece in pieces if piece]


def _cross(x: float, kind: str) -> str:
    return (
        f'<path d="M{x - 3:.1f} 1l6 6m0-6l-6 6" stroke="#c0392b" fill="none">'
        f"<title>{escape(kind)}</title></path>"
    )
