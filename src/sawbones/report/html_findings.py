"""The findings of the page: one card each, with source excerpt, evidence, experiment, diff and
test.
"""

from __future__ import annotations

from collections.abc import Mapping

from sawbones.masking import masked_text
from sawbones.report import figures, wording
from sawbones.report.figures import Figure
from sawbones.report.html_parts import code_block, coloured, diff_block, escape, plot
from sawbones.report.masked import masked_in
from sawbones.report.sources import source_of
from sawbones.schema import Evidence, Finding, Report, Site, Verdict

EXCERPT_MARGIN = 4
MOST_SITES = 4


def findings_section(
    report: Report, sources: Mapping[str, str], plots: dict[str, Figure] | None = None
) -> str:
    drawn: dict[str, Figure] = {} if plots is None else plots
    if not report.findings:
        return ""
    cards = "\n".join(
        _card(number, finding, sources, wording.explains(finding, report), drawn)
        for number, finding in enumerate(report.findings, start=1)
    )
    return f'<section id="findings"><h2>Findings</h2>\n{cards}</section>'


def _card(
    number: int,
    finding: Finding,
    sources: Mapping[str, str],
    explains: str,
    plots: dict[str, Figure],
) -> str:
    parts = [
        '<div class="eyebrow">'
        f'<span class="badge {escape(finding.status)}">{escape(finding.status)}</span>'
        f"<code>{escape(finding.fault)}</code>"
        f'<span class="quiet">{wording.confidence(finding)}</span></div>',
        f'<h3><span class="ordinal">{number}</span>{escape(finding.title)}</h3>',
        f"<p>Explains <code>{escape(explains)}</code>.</p>" if explains else "",
        _explanation(finding),
        _places(finding, sources),
        _evidence_table(finding),
        _experiment(finding, f"experiment-{number}", plots),
        _fix(finding, f"fix-{number}", plots),
    ]
    if finding.test:
        parts.append(
            f"<details><summary>Regression test</summary>{code_block(finding.test)}</details>"
        )
    body = "\n".join(part for part in parts if part)
    return f'<article class="card {escape(finding.status)}" id="finding-{number}">{body}</article>'


def _explanation(finding: Finding) -> str:
    """Of a crash: expected, got, because, try, and the sizes that met."""
    told = finding.explanation
    if told is None:
        return ""
    advice = finding.fix.summary if finding.fix is not None else ""
    said = (
        ("expected", told.expected),
        ("got", told.got),
        ("because", told.because),
        ("try", advice),
    )
    rows = "".join(
        f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in said if text
    )
    sizes = "".join(
        f"<tr><td><code>{escape(s.name)}</code></td><td>{escape(s.size)}</td>"
        f'<td class="quiet">{escape(s.source)}</td></tr>'
        for s in told.sizes
    )
    table = f'<table class="facts"><tbody>{sizes}</tbody></table>' if sizes else ""
    return (
        f'<div class="block"><h4>What happened</h4><table class="facts"><tbody>{rows}</tbody>'
        f"</table>{table}</div>"
    )


def _places(finding: Finding, sources: Mapping[str, str]) -> str:
    if not finding.where:
        return ""
    first, *others = finding.where
    shown = excerpt(first, sources)
    rest = "".join(excerpt(site, sources, margin=1) for site in others[: MOST_SITES - 1])
    if rest:
        left = len(others) - (MOST_SITES - 1)
        more = (
            f"<p class='quiet'>… and {wording.plural(left, 'more place')}</p>" if left > 0 else ""
        )
        rest = f"<details><summary>{wording.plural(len(others), 'more place')}</summary>{rest}{more}</details>"
    return f'<div class="block"><h4>Where</h4>{shown}{rest}</div>'


def excerpt(site: Site, sources: Mapping[str, str], margin: int = EXCERPT_MARGIN) -> str:
    """The lines around the site; the recorded line alone when the file is not at hand."""
    source = source_of(site, sources)
    lines = source.split("\n") if source is not None else []
    if 1 <= site.line <= len(lines):
        numbers = range(max(1, site.line - margin), min(len(lines), site.line + margin) + 1)
        rows = [(number, lines[number - 1].rstrip("\r")) for number in numbers]
    else:
        rows = [(site.line, site.code)]
    listed = "".join(_source_row(number, text, number == site.line) for number, text in rows)
    inside = (
        f" in <code>{escape(site.function)}</code>"
        if site.function and site.function != "<module>"
        else ""
    )
    return (
        f'<figure class="source"><figcaption><b>{escape(site)}</b>{inside}</figcaption>'
        f'<pre tabindex="0"><code>{listed}</code></pre></figure>'
    )


def _source_row(number: int, text: str, hit: bool) -> str:
    return (
        f'<span class="row{" hit" if hit else ""}"><span '
        f'class="no">{number}</span>{coloured(text) or " "}\n</span>'
    )


def _evidence_table(finding: Finding) -> str:
    if not finding.evidence:
        return ""
    rows = "".join(_evidence_row(evidence) for evidence in finding.evidence)
    return (
        '<div class="block"><h4>Evidence</h4><table class="evidence"><thead><tr><th>What '
        "was seen</th>"
        f'<th class="num">Measured</th><th class="num">Expected, or compared with</th><th>Steps</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _evidence_row(evidence: Evidence) -> str:
    steps = wording.steps_text(evidence.steps).partition(" ")[2]
    return (
        f"<tr><td>{escape(evidence.text)}</td>"
        f'<td class="num strong" data-label="measured">{wording.number(evidence.value)}</td>'
        f'<td class="num" data-label="against">{wording.number(evidence.expected)}</td>'
        f'<td class="quiet" data-label="steps">{steps or "–"}</td></tr>'
    )


def _experiment(finding: Finding, name: str, plots: dict[str, Figure]) -> str:
    if finding.verdict is not None:
        said = verdict_text(finding.verdict, name, plots)
        return f'<div class="block"><h4>Experiment</h4>{said}</div>'
    if proof := wording.proof(finding):
        return f'<div class="block"><h4>Proof</h4><p>{escape(proof)}</p></div>'
    if finding.experiment:
        named = escape(wording.experiment_name(finding.experiment))
        return (
            f'<div class="block"><h4>Experiment</h4><p class="quiet">{named} would decide it; '
            "it was not run.</p></div>"
        )
    return ""


def verdict_text(verdict: Verdict, name: str, plots: dict[str, Figure]) -> str:
    took = f", {wording.duration(verdict.seconds)}" if verdict.seconds else ""
    numbers = ""
    if verdict.baseline is not None and verdict.with_remedy is not None:
        numbers = (
            f'<p class="versus"><span>as it is<b>{wording.number(verdict.baseline)}</b></span>'
            '<i aria-hidden="true">→</i>'
            f"<span>with the remedy<b>{wording.number(verdict.with_remedy)}</b></span></p>"
        )
    return (
        f"<p>{escape(wording.experiment_title(verdict))}: <b>{escape(verdict.outcome)}</b>"
        f'<span class="quiet">{took}</span></p><p>{escape(verdict.result)}</p>{numbers}'
        f"{_side_by_side(verdict.details.get('curves'), name, plots)}"
    )


def _side_by_side(curves: object, name: str, plots: dict[str, Figure]) -> str:
    """The picture of an experiment: the loss as it is and under each change."""
    figure = figures.experiment(curves) if isinstance(curves, (list, tuple)) else None
    if figure is None:
        return ""
    key = "".join(
        f'<span><i class="swatch" style="background:var(--line{i})"></i>{escape(line["name"])}'
        "</span>"
        for i, line in enumerate(figure["lines"])
    )
    label = "Loss by step, " + " and ".join(line["name"] for line in figure["lines"])
    return (
        f'<p class="quiet picture">Loss by step</p>{plot(name, figure, plots, label)}'
        f'<p class="key">{key}</p>'
    )


def _fix(finding: Finding, name: str, plots: dict[str, Figure]) -> str:
    if finding.fix is None:
        return ""
    patch = diff_block(finding.fix.patch) if finding.fix.patch else ""
    told = f'<p class="quiet">{escape(wording.fix_told(finding.fix))}</p>' if patch else ""
    summary = escape(finding.fix.summary)
    drawn = _side_by_side((finding.fix.measured or {}).get("curves"), name, plots)
    return f'<div class="block"><h4>Fix</h4><p>{summary}</p>{patch}{told}{drawn}</div>'


def ruled_out_section(report: Report, plots: dict[str, Figure]) -> str:
    if not report.refuted and not report.cleared and not report.ignored:
        return ""
    rows = [
        f"<li><p><code>{escape(item.finding.fault)}</code> {escape(item.finding.title)}: ignored "
        f"by {escape(item.by)}</p></li>"
        for item in report.ignored
    ]
    rows += [
        f"<li><p><code>{escape(c.layer)}</code> {escape(c.by)}: {escape(c.result)}</p></li>"
        for c in report.cleared
    ]
    for number, finding in enumerate(report.refuted, start=1):
        verdict = finding.verdict
        why = verdict_text(verdict, f"refuted-{number}", plots) if verdict else ""
        rows.append(
            f"<li><p><code>{escape(finding.fault)}</code> {escape(finding.title)}</p>{why}</li>"
        )
    return (
        '<section id="ruled-out"><h2>Ruled out or ignored</h2><ul '
        f'class="plain-list">{"".join(rows)}</ul></section>'
    )


def coverage_section(report: Report) -> str:
    """What the silence rests on, and what nobody could look at."""
    silent = "".join(f"<li><code>{escape(fault)}</code></li>" for fault in report.looked)
    idle, lacking = wording.idle_and_blind(report.could_not_look)
    blind = "".join(
        f'<li><p>{escape(why)} <span class="quiet">({len(faults)})</span></p>'
        f'<ul class="chips">{"".join(f"<li><code>{escape(fault)}</code></li>" for fault in faults)}</ul></li>'
        for why, faults in lacking
    )
    parts = [f"<p>{escape(wording.looked_at(report).capitalize())}.</p>"]
    if silent:
        parts.append(
            f"<details><summary>{wording.plural(len(report.looked), 'silent check')}</summary>"
            f'<ul class="chips">{silent}</ul></details>'
        )
    if blind:
        count = wording.plural(sum(len(faults) for _, faults in lacking), "check")
        parts.append(f'<h3>{count} could not look</h3><ul class="plain-list">{blind}</ul>')
    if idle:
        count = wording.plural(sum(len(faults) for _, faults in idle), "check")
        parts.append(f'<p class="quiet">{count} have nothing to judge in this script.</p>')
    if report.against_good is not None:
        lines = wording.against_good(report.against_good)
        listed = "".join(f"<li><p>{escape(line)}</p></li>" for line in lines)
        parts.append(f'<h3>Against the good run</h3><ul class="plain-list">{listed}</ul>')
    masked = masked_text(masked_in(report))
    if masked:
        parts.append(f'<p class="quiet">masked: {escape(masked)}</p>')
    parts += [f'<p class="quiet">{escape(note)}</p>' for note in report.notes]
    return f'<section id="coverage"><h2>What was looked at</h2>{"".join(parts)}</section>'
