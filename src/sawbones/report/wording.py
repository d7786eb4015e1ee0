"""Words and numbers as both the terminal and the page write them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from sawbones.masking import shown_line
from sawbones.schema import (
    AgainstGood,
    CouldNotLook,
    Evidence,
    Finding,
    Fix,
    Report,
    Symptom,
    Verdict,
)


def number(value: float | None) -> str:
    if value is None:
        return "–"
    if not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}"


def duration(seconds: float) -> str:
    if not math.isfinite(seconds) or seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def plural(count: int, noun: str, many: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def ranges(steps: Iterable[int]) -> list[tuple[int, int]]:
    """Steps as closed ranges of neighbours: 1 2 3 7 -> (1, 3) (7, 7)."""
    found: list[tuple[int, int]] = []
    for step in sorted(set(steps)):
        if found and step == found[-1][1] + 1:
            found[-1] = (found[-1][0], step)
        else:
            found.append((step, step))
    return found


def steps_text(steps: Sequence[int], most: int = 6) -> str:
    if not steps:
        return ""
    parts = [str(first) if first == last else f"{first}–{last}" for first, last in ranges(steps)]
    more = f", … {len(parts) - most} more" if len(parts) > most else ""
    return f"{'step' if len(set(steps)) == 1 else 'steps'} {', '.join(parts[:most])}{more}"


def measured(evidence: Evidence) -> str:
    """`0.31, expected 0`, or "" when the evidence carries no number."""
    if evidence.value is None:
        return ""
    # What a quantity is compared with is a limit or another quantity, and nothing to be met.
    word = "compared with" if evidence.kind == "compared" else "expected"
    against = f", {word} {number(evidence.expected)}" if evidence.expected is not None else ""
    return f"{number(evidence.value)}{against}"


def confidence(finding: Finding) -> str:
    """How often such findings were right, where that was counted."""
    if not finding.confidence_n:
        return ""
    share = f"{100 * finding.confidence:.0f} %"
    return f"at least {share} right, over {finding.confidence_n} first tries on unseen scripts"


def proof(finding: Finding) -> str:
    """What makes a finding proven where no trial did."""
    if finding.status != "proven" or finding.verdict is not None:
        return ""
    exact = any(evidence.kind == "exact" for evidence in finding.evidence)
    return "the reading is exact: it must not differ from what is expected" if exact else ""


def experiment_name(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


def experiment_title(verdict: Verdict) -> str:
    """What was done; an older report has the name alone."""
    return shown_line(verdict.title or experiment_name(verdict.experiment))


def place(finding: Finding, script: str) -> str:
    return str(finding.where[0]) if finding.where else script


def headline(report: Report) -> str:
    """The verdict as a sentence."""
    certain = sum(finding.status in ("likely", "proven") for finding in report.findings)
    suspected = len(report.findings) - certain
    causes = plural(certain, "root cause") if certain else ""
    if report.verdict == "crashed":
        return f"The script crashed{f': {causes} found' if causes else ''}"
    if report.verdict == "sick":
        return f"{causes} found"
    if report.verdict == "unexplained":
        ill = [symptom.symptom for symptom in report.symptoms if symptom.stands]
        return f"Something is wrong ({', '.join(ill)}), and no cause was found"
    if report.verdict == "inconclusive":
        left = f", {plural(suspected, 'suspicion')} left open" if suspected else ""
        return f"Too little was seen to judge{left}"
    beside = [f"{len(report.ignored)} ignored"] if report.ignored else []
    beside += [f"{plural(suspected, 'suspicion')} left open"] if suspected else []
    return ", ".join(["No new fault found" if report.ignored else "No fault found", *beside])


def symptom(seen: Symptom) -> str:
    """`Symptom: the loss does not fall (...)`; a notable one is named as such."""
    name = "Symptom" if seen.cls == "ill" else "Notable"
    because = f" (explained by {seen.explained_by})" if seen.explained_by else ""
    return shown_line(f"{name}: {seen.text}{because}")


def against_good(compared: AgainstGood) -> list[str]:
    """One line each, the first differences first."""
    if not compared.differences:
        return [f"nothing differs from {compared.run} as far as both went"]
    lines = [f"{plural(len(compared.differences), 'difference')} from {compared.run}:"]
    for found in compared.differences:
        at = f" ({found.site})" if found.site is not None else ""
        lines.append(f"{found.text}{at}")
    return lines


def explains(finding: Finding, report: Report) -> str:
    """The symptoms that this finding accounts for, by name."""
    return ", ".join(s.symptom for s in report.symptoms if s.explained_by == finding.fault)


def extent(report: Report) -> str:
    """How much was looked at: rows of an audit, else steps."""
    audit = report.environment.get("audit")
    if isinstance(audit, Mapping) and isinstance(audit.get("rows"), int):
        return plural(audit["rows"], "row")
    return plural(report.steps, "step")


def statuses(report: Report) -> str:
    counts = Counter(finding.status for finding in report.findings)
    return ", ".join(
        f"{counts[status]} {status}"
        for status in ("proven", "likely", "suspected")
        if counts[status]
    )


def looked_at(report: Report) -> str:
    """What the silence rests on: how many checks looked, by layer."""
    layers = Counter(fault.split(".")[0] for fault in report.looked)
    if not layers:
        return "no check stayed silent"
    each = ", ".join(f"{layer} {count}" for layer, count in layers.items())
    return (
        f"{plural(len(report.looked), 'check')} looked over {extent(report)} and found "
        f"nothing ({each})"
    )


_IDLE = "Nothing to do"  # how a reason ends that is none to worry about


def idle_and_blind(
    blind: Iterable[CouldNotLook],
) -> tuple[list[tuple[str, list[str]]], list[tuple[str, list[str]]]]:
    """Checks for which this program has no work (no crash, one rank), and those that lack
    something, each by reason.
    """
    idle: dict[str, list[str]] = {}
    lacking = []
    for item in blind:
        if item.why.endswith(_IDLE):
            reason = _in_words(item.why.removesuffix(_IDLE).rstrip(". "))
            idle.setdefault(reason, []).append(item.fault)
        else:
            lacking.append(item)
    return sorted(idle.items(), key=lambda row: -len(row[1])), blind_spots(lacking)


def blind_spots(blind: Iterable[CouldNotLook]) -> list[tuple[str, list[str]]]:
    """Reasons with the faults they keep from being looked at, the most frequent reason first."""
    grouped: dict[str, list[str]] = {}
    for item in blind:
        grouped.setdefault(_in_words(item.why), []).append(item.fault)
    return sorted(grouped.items(), key=lambda pair: -len(pair[1]))


def _in_words(why: str) -> str:
    """A reason without the name of the signal: two checks may lack one thing by two names."""
    return shown_line(why.split(": ", 1)[-1] if why.startswith("needs ") else why)


LEVELS = {
    "verified": "verified: applied, run from the same seed",
    "safe": "not run: the patch applies and compiles",
    "unsafe": "read it first",
    "display": "no patch: for a person to change",
}


def fix_told(fix: Fix) -> str:
    """How far a fix may be trusted, and what was seen with it, in one line."""
    told = LEVELS[fix.level]
    if not fix.measured:
        return told
    before, after = fix.measured.get("before", {}), fix.measured.get("after", {})
    numbers = [fix.measured.get("result", "")]
    for name in ("loss", "evaluation"):
        if name in before and name in after:
            numbers.append(f"{name} {_short(before[name])} → {_short(after[name])}")
        elif name in after:
            numbers.append(f"{name} {_short(after[name])}")
    return f"{told}; {'; '.join(filter(None, numbers))} ({after.get('steps', 0)} steps)"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)
