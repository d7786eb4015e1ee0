"""Report -> terminal: the verdict first, then one panel for each finding.

Everything that came from the user's files goes in as Text, never as a string: rich would read
`[red]` in a source line as markup. Colour is the console's affair, which has none when the output
is piped.
"""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from sawbones.masking import masked_text, shown, shown_line
from sawbones.report import wording
from sawbones.report.masked import masked_in
from sawbones.schema import Evidence, Explanation, Finding, Report, Symptom, Verdict

WIDTH = 100
MOST_SITES = 3
MOST_EVIDENCE = 6
MOST_REASONS = 2
MOST_SIZES = 6
MOST_DIFF_LINES = 24
VERDICT_STYLES = {
    "healthy": "bold green",
    "sick": "bold red",
    "unexplained": "bold red",
    "inconclusive": "bold yellow",
    "crashed": "bold magenta",
}
STATUS_STYLES = {"proven": "red", "likely": "yellow", "suspected": "cyan"}


def render_terminal(report: Report, console: Console, quiet: bool = False) -> None:
    if quiet:
        _render_quiet(report, console)
        return
    width = min(WIDTH, console.width)
    console.print(_verdict(report), width=width)
    for number, finding in enumerate(report.findings, start=1):
        console.print(_panel(number, finding, wording.explains(finding, report)), width=width)
    console.print(_summary(report), width=width)


def _render_quiet(report: Report, console: Console) -> None:
    """One line per finding, in the form editors and CI annotators know: file:line: what."""
    lines = [
        f"{wording.place(finding, report.script)}: {finding.fault} {finding.status} {finding.title}"
        for finding in report.findings
    ]
    if not lines and report.verdict == "crashed":
        lines = [f"{report.script}: crashed, no fault found"]
    elif report.verdict in ("unexplained", "inconclusive"):
        told = [s.text for s in report.symptoms if s.stands] or report.notes
        lines.append(f"{report.script}: {report.verdict}: {'; '.join(told)}".rstrip(": "))
    for line in lines:
        console.print(Text(shown_line(line)), soft_wrap=True)


def _verdict(report: Report) -> RenderableType:
    style = VERDICT_STYLES.get(report.verdict, "bold")
    first = Text.assemble((report.verdict.upper(), style), "  ", (wording.headline(report), "bold"))
    facts = [
        shown_line(report.script),
        wording.extent(report),
        wording.duration(report.seconds),
    ]
    if report.findings:
        facts.append(wording.statuses(report))
    # What is ill comes before everything that is said about it.
    lines: list[RenderableType] = [_symptom(s) for s in report.symptoms if s.cls == "ill"]
    lines += [Text()] if lines else []
    lines += [first, Text(" · ".join(facts), style="dim")]
    lines += [_symptom(s) for s in report.symptoms if s.cls != "ill"]
    if report.verdict == "healthy":
        lines += [Text(shown_line(report.progress))] if report.progress else []
        lines.append(Text(f"Looked at: {wording.looked_at(report)}."))
    return Padding(Group(*lines), (1, 0))


def _symptom(symptom: Symptom) -> Text:
    style = "red" if symptom.stands else "yellow" if symptom.cls == "ill" else "dim"
    return Text(wording.symptom(symptom), style=style)


def _panel(number: int, finding: Finding, explains: str) -> Panel:
    style = STATUS_STYLES.get(finding.status, "white")
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(ratio=1, overflow="fold")
    for index, site in enumerate(finding.where[:MOST_SITES]):
        inside = f" in {site.function}" if site.function and site.function != "<module>" else ""
        place = Text(shown_line(f"{site}{inside}"), style="bold" if index == 0 else "")
        rows.add_row("where" if index == 0 else "", place)
        if site.code.strip():
            rows.add_row("", _clipped(f"{site.line} │ {shown_line(site.code)}", "cyan"))
    if len(finding.where) > MOST_SITES:
        rows.add_row(
            "",
            Text(
                f"… and {wording.plural(len(finding.where) - MOST_SITES, 'more place')}",
                style="dim",
            ),
        )
    if explains:
        rows.add_row("explains", Text(explains))
    _add_explanation(rows, finding.explanation)
    _add_evidence(rows, finding)
    if proof := wording.proof(finding):
        rows.add_row("proof", Text(proof))
    elif finding.verdict is not None:
        rows.add_row("experiment", _experiment(finding.verdict))
    elif finding.experiment:
        rows.add_row(
            "experiment",
            Text(
                f"{wording.experiment_name(finding.experiment)} would decide it; it was not run",
                style="dim",
            ),
        )
    if finding.fix is not None:
        label = "try" if finding.explanation is not None else "fix"
        rows.add_row(label, Text(shown_line(finding.fix.summary)))
        for line in _change(finding):
            rows.add_row("", line)
    body = Group(Text(shown_line(finding.title), style="bold"), Text(), rows)
    head = Text.assemble(
        (f" {number} · {finding.fault} ", f"bold {style}"),
        (f"· {finding.status} ", style),
    )
    return Panel(body, title=head, title_align="left", border_style=style, padding=(0, 2))


def _add_explanation(rows: Table, told: Explanation | None) -> None:
    """Of a crash: what the operation takes, what it got, and the sizes that met."""
    if told is None:
        return
    for label, text in (("expected", told.expected), ("got", told.got), ("because", told.because)):
        if text:
            rows.add_row(label, Text(shown_line(text)))
    if told.sizes:
        sizes = Table.grid(padding=(0, 3))
        for row in told.sizes[:MOST_SIZES]:
            cells = (row.name, row.size, row.source)
            sizes.add_row(*(Text(shown_line(cell), style="cyan") for cell in cells))
        rows.add_row("sizes", sizes)


def _add_evidence(rows: Table, finding: Finding) -> None:
    told = finding.explanation is not None
    # The explanation says the numbers already: what torch said stands for all of it.
    listed = [e for e in finding.evidence if e.kind == "refused"] if told else finding.evidence
    for index, evidence in enumerate(listed[:MOST_EVIDENCE]):
        rows.add_row("evidence" if index == 0 else "", _evidence(evidence))
    if len(finding.evidence) > MOST_EVIDENCE:
        rows.add_row(
            "",
            Text(
                f"… and {len(finding.evidence) - MOST_EVIDENCE} more in the JSON report",
                style="dim",
            ),
        )


def _clipped(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _evidence(evidence: Evidence) -> Text:
    text = Text(shown_line(evidence.text))
    figures = wording.measured(evidence)
    if figures:
        text.append("\nmeasured ", style="dim").append(figures, style="bold")
    steps = wording.steps_text(evidence.steps)
    if steps:
        text.append(" · " if figures else "\n", style="dim").append(steps, style="dim")
    return text


def _experiment(verdict: Verdict) -> Text:
    text = Text(f"{wording.experiment_title(verdict)}: {verdict.outcome}", style="bold")
    text.append(
        f" in {wording.duration(verdict.seconds)}" if verdict.seconds else "", style="dim not bold"
    )
    text.append("\n" + shown_line(verdict.result), style="not bold")
    if verdict.baseline is not None and verdict.with_remedy is not None:
        text.append("\nas it is ", style="dim not bold").append(wording.number(verdict.baseline))
        text.append(" → with the remedy ", style="dim not bold").append(
            wording.number(verdict.with_remedy)
        )
    return text


def _change(finding: Finding) -> list[Text]:
    """The heart of the patch; without a patch, the change as the check named it."""
    fix = finding.fix
    if fix is None:
        return []
    if fix.patch:
        lines = _tightened(fix.patch)
    elif fix.replace:
        old, new = fix.replace
        lines = [f"- {line}" for line in old.splitlines()]
        lines += [f"+ {line}" for line in new.splitlines()]
    else:
        lines = []
    styles = {"+": "green", "-": "red"}
    kept = [_clipped(shown(line), styles.get(line[:1], "")) for line in lines[:MOST_DIFF_LINES]]
    if len(lines) > MOST_DIFF_LINES:
        kept.append(
            Text(f"… {len(lines) - MOST_DIFF_LINES} more lines in the JSON report", style="dim")
        )
    return kept


def _tightened(patch: str) -> list[str]:
    """A patch without headers, shared indentation and all but one line of context: the panel says
    the place already.
    """
    lines = [
        line for line in patch.split("\n")[:-1] if not line.startswith(("--- ", "+++ ", "\\ "))
    ]
    near = [
        any(other[:1] in ("+", "-") for other in lines[max(0, i - 1) : i + 2])
        for i in range(len(lines))
    ]
    kept = [
        line
        for line, close in zip(lines, near, strict=True)
        if close and line[1:].strip() and line[0] != "@"
    ]
    margin = min((len(line[1:]) - len(line[1:].lstrip()) for line in kept), default=0)
    return [f"{line[0]} {line[1 + margin :]}" for line in kept]


def _by_reason(reasons: list[tuple[str, list[str]]]) -> str:
    said = " · ".join(f"{why} ({len(faults)})" for why, faults in reasons[:MOST_REASONS])
    rest = sum(len(faults) for _, faults in reasons[MOST_REASONS:])
    more = f" · other reasons ({rest})" if rest else ""
    count = sum(len(faults) for _, faults in reasons)
    return f"{wording.plural(count, 'check')}: {said}{more}"


def _summary(report: Report) -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(ratio=1, overflow="fold")
    if report.refuted:
        names = ", ".join(
            finding.fault + (f" ({finding.verdict.experiment})" if finding.verdict else "")
            for finding in report.refuted
        )
        rows.add_row("refuted", Text(f"{wording.plural(len(report.refuted), 'suspect')}: {names}"))
    if report.against_good is not None:
        for index, line in enumerate(wording.against_good(report.against_good)):
            rows.add_row("" if index else "good run", Text(shown_line(line)))
    for item in report.ignored:
        said = f"{item.finding.fault} {wording.place(item.finding, report.script)}, by {item.by}"
        rows.add_row("ignored", Text(shown_line(said)))
    if report.could_not_look:
        idle, blind = wording.idle_and_blind(report.could_not_look)
        if blind:
            rows.add_row("could not look", Text(_by_reason(blind)))
        if idle:
            count = sum(len(faults) for _, faults in idle)
            does = "does" if count == 1 else "do"
            said = f"{wording.plural(count, 'check')} {does} not apply to this script"
            rows.add_row("not needed", Text(said))
    if report.looked and report.verdict != "healthy":
        rows.add_row("silent", Text(wording.looked_at(report)))
    for cleared in report.cleared:
        said = f"{cleared.layer}: {cleared.by}: {cleared.result}"
        rows.add_row("cleared", Text(shown_line(said)))
    masked = masked_text(masked_in(report))
    if masked:
        rows.add_row("masked", Text(shown_line(masked)))
    for note in report.notes:
        rows.add_row("note", Text(shown_line(note)))
    return rows


def render_fixes(report: Report, console: Console, quiet: bool = False) -> None:
    """One block for each cause: its fix, the whole diff, and a line of numbers."""
    width = min(WIDTH, console.width)
    for finding in report.findings:
        if finding.status == "suspected" or finding.fix is None:
            continue
        if quiet:
            print(finding.fix.patch or "", end="")
            continue
        place = wording.place(finding, report.script)
        style = STATUS_STYLES.get(finding.status, "white")
        head = Text.assemble((finding.fault, f"bold {style}"), f" · {finding.status} · {place}")
        console.print(Text(), head, Text(shown_line(finding.title)), sep="\n", width=width)
        console.print(Text(shown_line(finding.fix.summary), style="bold"), width=width)
        for line in (finding.fix.patch or "").split("\n")[:-1]:
            console.print(_diff_line(line.removesuffix("\r")), soft_wrap=True)
        told = wording.fix_told(finding.fix)
        console.print(Text(shown_line(told), style=_LEVEL_STYLES[finding.fix.level]), width=width)
        for tried in finding.evidence:
            if tried.text.startswith("tried, "):
                console.print(Text(shown_line(tried.text), style="dim"), width=width)
    for note in report.notes:
        if not quiet:
            console.print(Text(shown_line(note), style="dim"), width=width)


_LEVEL_STYLES = {"verified": "bold green", "safe": "yellow", "unsafe": "yellow", "display": "dim"}


def _diff_line(line: str) -> Text:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    style = "bold" if line.startswith(("--- ", "+++ ")) else styles.get(line[:1], "")
    return Text(shown(line), style=style)
