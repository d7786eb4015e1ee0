"""The recorded run on the page: curves, layers, one step, what depends on what, how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sawbones.report import figures, wording
from sawbones.report.figures import Figure
from sawbones.report.html_parts import escape, plot
from sawbones.schema import Attention, DeepStep, Event, Finding, Report, Run, Site

MOST_EVENTS = 80
MOST_INFLUENCE_MAPS = 4
MOST_LOGGED = 24  # pictures of what a trainer logged


def run_sections(run: Run, report: Report, plots: dict[str, Figure]) -> list[str]:
    """The sections as HTML; their figures are put into `plots` under the ids that the HTML
    names.
    """
    sections = (
        _ending(run),
        _curves(run, report.findings, plots),
        _layers(run, plots),
        _one_step(run, report.findings, plots),
        _dependence(run, plots),
    )
    return [section for section in sections if section]


def _ending(run: Run) -> str:
    """Cause and place first; frames of libraries, operators and shapes are folded away."""
    ending = run.ending
    if ending.exception is None:
        return ""
    said = f"<p><b>{escape(ending.exception)}</b> {escape(ending.message or '')}</p>"
    place = ""
    if ending.site is not None:
        code = f"<br><code>{escape(ending.site.code.strip())}</code>" if ending.site.code else ""
        place = f"<p>at <b>{escape(ending.site)}</b>{code}</p>"
    folded = [
        ("The frames", _frames(ending.traceback)),
        ("The operator that failed", _facts_table(ending.failing or {})),
        ("The batch that was being processed", _facts_table(ending.batch or {})),
    ]
    details = "".join(
        f"<details><summary>{title}</summary>{body}</details>" for title, body in folded if body
    )
    return f'<section id="crash"><h2>How it ended</h2>{said}{place}{details}</section>'


def _frames(sites: Sequence[Site]) -> str:
    rows = "".join(
        f'<tr><td>{escape(site)}</td><td class="quiet">{escape(site.function)}</td>'
        f"<td><code>{escape(site.code.strip())}</code></td></tr>"
        for site in sites
    )
    return (
        f'<div class="scroll" tabindex="0"><table><tbody>{rows}</tbody></table></div>'
        if rows
        else ""
    )


def _curves(run: Run, findings: Sequence[Finding], plots: dict[str, Figure]) -> str:
    drawn = []
    for column, title, note in figures.CURVES:
        figure = figures.curve(run, column, findings)
        if figure is not None:
            label = f"{title} over {wording.plural(run.num_steps, 'step')}: {_told(figure)}"
            drawn_plot = plot(column, figure, plots, label)
            drawn.append(
                f'<div class="panel"><h3>{title}</h3><p class="quiet">{note}</p>{drawn_plot}</div>'
            )
    for number, (name, figure) in enumerate(figures.logged(run)[:MOST_LOGGED]):
        label = f"{name}, logged by the trainer: {_told(figure)}"
        drawn_plot = plot(f"logged-{number}", figure, plots, label)
        drawn.append(
            f'<div class="panel"><h3>{escape(name)}</h3><p class="quiet">logged by the trainer</p>'
            f"{drawn_plot}</div>"
        )
    if not drawn:
        return ""
    marked = any(evidence.steps for finding in findings for evidence in finding.evidence)
    band = (
        '<span><i class="swatch mark"></i>steps the evidence speaks of, numbered like the '
        "finding</span>"
    )
    key = (
        f'<p class="key">{band if marked else ""}<span><i class="cross">✕</i>NaN or Inf</span></p>'
    )
    return (
        f'<section id="curves"><h2>Curves</h2>{key}<div '
        f'class="panels">{"".join(drawn)}</div></section>'
    )


def _told(figure: Figure) -> str:
    """What a curve shows, for those who hear the page."""
    said = []
    for line in figure["lines"]:
        values = [value for value in line["y"] if value is not None]
        if values:
            number = wording.number
            said.append(
                f"{line['name']} goes from {number(values[0])} to {number(values[-1])}, lowest "
                f"{number(min(values))}, highest {number(max(values))}"
            )
    crosses = [step for group in figure["broken"] for step in group["x"]]
    if crosses:
        said.append(f"not finite at {wording.steps_text(crosses)}")
    return "; ".join(said)


def _layers(run: Run, plots: dict[str, Figure]) -> str:
    figure = figures.layers(run)
    if figure is None:
        return ""
    key = (
        '<p class="key"><span><i class="swatch bad"></i>NaN or Inf</span>'
        '<span><i class="swatch zero"></i>exactly zero</span>'
        '<span><i class="swatch none"></i>no gradient</span></p>'
    )
    drawn_plot = plot("layers", figure, plots, "Gradient norm of every layer over time")
    return (
        f'<section id="layers"><h2>Gradient norm by layer</h2>{key}<div '
        f'class="panel">{drawn_plot}</div></section>'
    )


def _one_step(run: Run, findings: Sequence[Finding], plots: dict[str, Figure]) -> str:
    step = _telling_step(run, findings)
    if step is None:
        return ""
    events = [event for event in run.events if event.step == step and event.rank == run.rank]
    shown = events[:MOST_EVENTS]
    own_ms = None if run.own_ms is None else dict(run.own_ms)
    figure = figures.timeline(shown, own_ms)
    if figure is None:
        return ""
    starts, _ = figures.own_time_out(shown, own_ms)
    rows = "".join(
        _event_row(number, event, start)
        for number, (event, start) in enumerate(zip(shown, starts, strict=True), start=1)
    )
    left = len(events) - len(shown)
    more = f'<p class="quiet">… and {wording.plural(left, "more event")}</p>' if left else ""
    drawn_plot = plot("timeline", figure, plots, f"Events of step {step} in order")
    return (
        f'<section id="step"><h2>Step {step}, event by event</h2>{_own_time(figure, own_ms)}<div class="panel">{drawn_plot}</div>'
        f"<details><summary>{wording.plural(len(events), 'event')} with source lines</summary>"
        f'<div class="scroll" tabindex="0"><table><thead><tr>'
        '<th class="num">#</th><th '
        'class="num">ms</th><th>Event</th><th>Where</th><th>What</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></div>{more}</details></section>"
    )


def _own_time(figure: Figure, own_ms: Mapping[int, float] | None) -> str:
    said = "Milliseconds since the step began; "
    if own_ms is None:
        said += "how long each took is not known of this recording."
    else:
        said += "a bar lasts until the next event. The time that watching took"
        said += f" ({figure['own_ms']:.3g} ms) is taken out."
    return f'<p class="quiet">{said}</p>'


def _telling_step(run: Run, findings: Sequence[Finding]) -> int | None:
    """The step whose events say most: one named by evidence about events, else by any evidence,
    else the middle.
    """
    with_events = {event.step for event in run.events if event.kind != "seed"}
    if not with_events:
        return None
    evidence = [item for finding in findings for item in finding.evidence]
    for wanted in ([item for item in evidence if item.signal == "events"], evidence):
        for step in (step for item in wanted for step in item.steps):
            if step in with_events:
                return step
    return sorted(with_events)[len(with_events) // 2]


def _event_row(number: int, event: Event, start: float) -> str:
    facts = ", ".join(
        f"{key} {_short(value)}"
        for key, value in event.data.items()
        if value not in (None, [], {}, "")
    )
    code = (
        f"<br><code>{escape(event.site.code.strip())}</code>"
        if event.site and event.site.code
        else ""
    )
    return (
        f'<tr><td class="num quiet">{number}</td><td '
        f'class="num">{start:.2f}</td>'
        f"<td><b>{escape(event.kind)}</b></td>"
        f'<td>{escape(event.site or "")}{code}</td><td class="quiet">{escape(facts)}</td></tr>'
    )


def _short(value: Any) -> str:
    if isinstance(value, float):
        return wording.number(value)
    text = str(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _dependence(run: Run, plots: dict[str, Figure]) -> str:
    # The last deep step that has it: the model has learned something by then.
    influence = next(
        (deep for deep in reversed(run.deep) if any(item.map for item in deep.influence)), None
    )
    attention = next((deep for deep in reversed(run.deep) if deep.attention), None)
    parts = []
    if influence is not None:
        parts.append(_influence(influence, plots))
    if attention is not None:
        rows = "".join(_attention_row(item) for item in attention.attention)
        parts.append(
            f'<h3>Attention <span class="quiet">at step {attention.step}</span></h3>'
            '<div class="scroll" tabindex="0"><table class="meters"><thead><tr>'
            "<th>Layer</th><th>Entropy<br><small>1 = uniform</small></th>"
            "<th>Mass on the future</th><th>Mass on itself</th>"
            '<th>Mass on padding</th><th class="num">Masked rows</th>'
            '<th class="num">Score spread<br><small>seen / expected</small></th></tr></thead>'
            f"<tbody>{rows}</tbody></table></div>"
        )
    return (
        f'<section id="dependence"><h2>What depends on what</h2>{"".join(parts)}</section>'
        if parts
        else ""
    )


def _influence(deep: DeepStep, plots: dict[str, Figure]) -> str:
    drawn = []
    for index, item in enumerate(
        [item for item in deep.influence if item.map][:MOST_INFLUENCE_MAPS]
    ):
        figure = figures.influence(item)
        if figure is None:
            continue
        shares = (
            ("future", item.future),
            ("past", item.past),
            ("itself", item.self),
            ("other examples", item.other_examples),
        )
        facts = " · ".join(
            f"{name} {wording.number(share)}" for name, share in shares if share is not None
        )
        drawn_plot = plot(
            f"influence-{index}", figure, plots, f"Influence of {item.source} on the outputs"
        )
        drawn.append(
            f'<div class="panel"><h3>{escape(item.source)}</h3><p '
            f'class="quiet">{facts}</p>{drawn_plot}</div>'
        )
    return (
        '<h3>Influence <span class="quiet">of every input position on every output, at '
        f"step {deep.step}</span></h3>"
        f'<p class="key"><span><i class="dotted"></i>right of this line lies the future</span></p>'
        f'<div class="panels maps">{"".join(drawn)}</div>'
    )


def _attention_row(item: Attention) -> str:
    cells = "".join(
        _meter(share) for share in (item.entropy, item.future_mass, item.self_mass, item.pad_mass)
    )
    return (
        f"<tr><td><code>{escape(item.module or item.kind)}</code></td>{cells}<td "
        f'class="num">{item.masked_rows}</td>'
        f'<td class="num">{wording.number(item.score_std)} / '
        f"{wording.number(item.expected_score_std)}</td></tr>"
    )


def _meter(share: float | None) -> str:
    if share is None:
        return '<td class="quiet">–</td>'
    filled = min(max(share, 0.0), 1.0) if share == share else 0.0
    return (
        '<td><span class="meter"><i '
        f'style="width:{100 * filled:.0f}%"></i></span>{wording.number(share)}</td>'
    )


def environment_section(report: Report, run: Run | None) -> str:
    facts: dict[str, Any] = dict(report.environment or (run.environment if run else {}))
    if run is not None:
        facts |= {
            "command": " ".join(run.argv),
            "processes": run.world_size,
            "run folder": run.folder,
        }
    return (
        f'<section id="environment"><h2>Environment</h2>{_facts_table(facts)}</section>'
        if facts
        else ""
    )


# What only a program can read.
_INTERNAL = ("fingerprint",)


def _facts_table(facts: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>"
        for key, value in _flat(facts)
        if not any(word in key for word in _INTERNAL)
    )
    return f'<table class="facts"><tbody>{rows}</tbody></table>' if rows else ""


def _flat(facts: Mapping[str, Any], before: str = "") -> list[tuple[str, str]]:
    """Nested facts as rows: `inputs 1 shape`, never a dict as Python prints it."""
    rows: list[tuple[str, str]] = []
    for key, value in facts.items():
        name = f"{before}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            rows += _flat(value, f"{name} ")
        elif isinstance(value, (list, tuple)):
            if any(isinstance(item, Mapping) for item in value):
                for number, item in enumerate(value, start=1):
                    one = item if isinstance(item, Mapping) else {"": item}
                    rows += _flat(one, f"{name} {number} ")
            else:
                rows.append((name, ", ".join(_short(item) for item in value) or "–"))
        else:
            rows.append((name, "–" if value is None else _short(value)))
    return rows
