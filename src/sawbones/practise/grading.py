"""Answer -> points, by running: what is claimed is measured again, the patch is tried, the report is
read for its parts and its numbers. Every point is explained in a line.

    cause and reproducibility 35   fault 15, line 8, the command repeats bit for bit 12
    diagnostics               30   a true measurement 6, one that the healthy twin does not show 10,
                                   a trial that separates suspects 14; each false claim costs 5
    fix                       20   heals 12, nothing that is not needed 5, a test that tells 3
    clarity                   15   six parts 9, numbers that hold 6
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sawbones.practise.answers import Answer
from sawbones.practise.claims import holds, value_of
from sawbones.practise.exercises import Exercise
from sawbones.practise.injecting import injectors
from sawbones.practise.measuring import NUMBER, Measured

PARTS = {
    "symptom": r"symptom|what (?:was|is) seen",
    "reproduction": r"reproduc|repeat|command|seed",
    "evidence": r"evidence|measur|claim",
    "cause": r"\bcause|because|reason",
    "fix": r"\bfix|patch|mend|repair",
    "prevention": r"prevent|in future|regression|test",
}
MOST_WORDS = 500
FALSE_CLAIM = 5
MOST_CLAIMS = 12  # of which points come: claims by the dozen are no evidence
Say = Callable[[str], None]


@dataclass(frozen=True)
class Line:
    """Points of one row of the rubric, and why."""

    part: str
    points: float
    most: float
    why: str


@dataclass(frozen=True)
class Trials:
    """What the grader ran for an answer."""

    broken: Measured
    healthy: Measured
    repeats: bool | None  # None: the command could not be run
    why_not: str = ""
    heals: bool | None = None  # the patch; None: there is none, or it does not apply
    patched_text: str = ""  # the script with the patch in it
    fix_note: str = ""
    test_tells: bool | None = None  # the test fails before and passes after
    outcomes: dict[str, str] | None = None  # trial -> confirmed, refuted, open


def grade(exercise: Exercise, answer: Answer, trials: Trials, hints: int = 0) -> list[Line]:
    lines = [
        *_cause(exercise, answer),
        _reproduction(exercise, trials),
        *_diagnostics(exercise, answer, trials),
        *_fix(exercise, answer, trials),
        *_clarity(answer, trials),
    ]
    if hints:
        lines.append(Line("hints", -5.0 * hints, 0, f"{hints} used, 5 points each"))
    return lines


def total(lines: Sequence[Line]) -> float:
    return max(0.0, round(sum(line.points for line in lines), 1))


def _cause(exercise: Exercise, answer: Answer) -> list[Line]:
    wanted, named = set(exercise.faults), set(answer.faults)
    if not wanted:
        right = not named
        said = (
            "the script is healthy"
            if right
            else f"the script is healthy; {_list(named)} is not there"
        )
        return [
            Line("cause", 15.0 * right, 15, said),
            Line(
                "line",
                8.0 * right,
                8,
                "there is no line to name" if right else "no line is at fault",
            ),
        ]
    each = 15 / len(wanted)
    hit = wanted & named
    layers = {one.partition(".")[0] for one in wanted - hit}
    near = [one for one in named - wanted if one.partition(".")[0] in layers]
    wrong = [one for one in named - wanted if one not in near]
    points = each * len(hit) + each / 3 * min(len(near), len(wanted - hit))
    points = max(0.0, points - 5.0 * len(wrong))
    parts = [f"found: {_list(hit)}"] if hit else []
    parts += [f"missed: {_list(wanted - hit)}"] if wanted - hit else []
    parts += [f"right layer, not this: {_list(near)}"] if near else []
    parts += [f"not there: {_list(wrong)}, 5 points each"] if wrong else []
    at = [line for line in answer.lines if exercise.is_near(line)]
    share = min(1.0, len(at) / len(wanted)) if hit else 0.0
    where = (
        f"changed lines: {_list(sorted(exercise.lines))}; named: {_list(answer.lines) or 'none'}"
    )
    if not hit:
        where += "; without the cause a line says nothing"
    return [
        Line("cause", round(points, 1), 15, "; ".join(parts)),
        Line("line", round(8 * share, 1), 8, where),
    ]


def _reproduction(exercise: Exercise, trials: Trials) -> Line:
    known = injectors()
    if trials.repeats is False and any(not known[name].repeats for name in exercise.faults):
        return Line("reproduction", 12, 12, f"{trials.why_not}, which is what is wrong with it")
    if trials.repeats:
        why = "two runs of the command gave the same output and the same files, by SHA-256"
        return Line("reproduction", 12, 12, why)
    return Line("reproduction", 0, 12, trials.why_not or "two runs of the command differ")


def _diagnostics(exercise: Exercise, answer: Answer, trials: Trials) -> list[Line]:
    claims = list(dict.fromkeys(answer.claims))[:MOST_CLAIMS]
    true: list[str] = []
    separating: list[str] = []
    isolating: list[str] = []
    false: list[str] = []
    for claim in claims:
        if claim.is_trial:
            outcome = (trials.outcomes or {}).get(claim.trial, "open")
            right = outcome == ("confirmed" if claim.heals else "refuted")
            (isolating if right else false).append(f"`{claim.text}` ({outcome})")
            continue
        value, there = value_of(claim, trials.broken), value_of(claim, trials.healthy)
        shown = "nothing of the kind" if value is None else f"{value:.4g}"
        if not holds(claim, value):
            false.append(f"`{claim.text}` (measured: {shown})")
            continue
        true.append(f"`{claim.text}` (measured: {shown})")
        if exercise.faults and not holds(claim, there):
            twin = "nothing" if there is None else f"{there:.4g}"
            separating.append(f"`{claim.text}` (healthy: {twin})")
    if not exercise.faults:
        separating = true  # there is no other script to differ from
    supported = bool(set(exercise.faults) & set(answer.faults)) or not exercise.faults
    lines = [
        Line("measured", 6.0 * bool(true), 6, _list(true) or "no claim that holds"),
        Line(
            "differs from a healthy run",
            10.0 * bool(separating),
            10,
            _list(separating) or "no claim tells this run from a healthy one",
        ),
        Line(
            "isolation",
            14.0 * bool(isolating) * (1.0 if supported else 0.5),
            14,
            _list(isolating) or "no trial was claimed that came out as said",
        ),
    ]
    if false:
        most = sum(line.points for line in lines)
        cost = min(most, FALSE_CLAIM * len(false))
        lines.append(Line("claims that do not hold", 0 - cost, 0, _list(false)))
    return lines


def _fix(exercise: Exercise, answer: Answer, trials: Trials) -> list[Line]:
    if not exercise.faults:
        kept = not answer.fix
        why = "nothing had to be changed" if kept else "a healthy script was changed"
        return [Line("fix", 20.0 * kept, 20, why)]
    if not trials.heals:
        why = trials.fix_note or ("no patch" if not answer.fix else "the patch does not heal")
        return [Line("fix heals", 0, 12, why), Line("fix is minimal", 0, 5, "it does not heal")]
    changed = _changed(exercise.broken.text, trials.patched_text)
    needed = _changed(exercise.broken.text, exercise.healthy.text)
    extra = max(0, changed - needed)
    minimal = max(0.0, 5.0 - extra)
    lines = [
        Line(
            "fix heals", 12, 12, trials.fix_note or "the patched script behaves as the healthy one"
        ),
        Line("fix is minimal", minimal, 5, f"{changed} lines changed, {needed} are needed"),
    ]
    tells = bool(trials.test_tells)
    why = "fails before, passes after" if tells else "no test that fails before and passes after"
    return [*lines, Line("test", 3.0 * tells, 3, why)]


def _clarity(answer: Answer, trials: Trials) -> list[Line]:
    text = answer.report or answer.because
    words = len(text.split())
    if not text.strip():
        return [Line("report", 0, 15, "no report")]
    if words > MOST_WORDS:
        return [Line("report", 0, 15, f"{words} words; at most {MOST_WORDS} are read")]
    present = [name for name, sign in PARTS.items() if re.search(sign, text, re.IGNORECASE)]
    absent = [name for name in PARTS if name not in present]
    wrong = _unsupported(text, answer, trials)
    parts = Line(
        "report has its parts",
        round(9 * len(present) / len(PARTS), 1),
        9,
        f"missing: {', '.join(absent)}" if absent else "all six are there",
    )
    if not NUMBER.search(text):
        return [parts, Line("numbers", 0, 6, "the report holds no number that could be checked")]
    points = max(0.0, 6.0 - 2.0 * len(wrong))
    why = f"not measured anywhere: {', '.join(wrong[:6])}" if wrong else "each number was measured"
    return [parts, Line("numbers", points, 6, why)]


def _unsupported(text: str, answer: Answer, trials: Trials) -> list[str]:
    """Numbers of the report that neither the runs, nor the script, nor a measured claim hold."""
    known = {float(n) for n in NUMBER.findall("\n".join((*trials.broken.log, *trials.healthy.log)))}
    known |= {float(n) for n in NUMBER.findall(trials.patched_text)}
    known |= {float(line) for line in answer.lines}
    for claim in answer.claims:
        value = None if claim.is_trial else value_of(claim, trials.broken)
        if value is not None:
            known.add(value)
        known |= {float(n) for n in NUMBER.findall(claim.text)}
    for run in (trials.broken.run, trials.healthy.run):
        if run is not None:
            for column in ("step", "loss", "grad_norm", "lr"):
                known |= {float(v) for v in run.steps.get(column, ())}
            known.add(float(run.num_steps))
    return [n for n in dict.fromkeys(NUMBER.findall(text)) if not _is_known(n, known)]


def _is_known(number: str, known: set[float]) -> bool:
    decimals = len(number.partition(".")[2].lower().partition("e")[0])
    value = float(number)
    if value != value:
        return any(one != one for one in known)
    slack = 0.5 * 10.0**-decimals if "e" not in number.lower() else abs(value) * 0.05
    return any(abs(one - value) <= slack + 1e-12 for one in known if one == one)


def _changed(old: str, new: str) -> int:
    found = difflib.ndiff(old.splitlines(), new.splitlines())
    return sum(line.startswith(("+ ", "- ")) for line in found)


def _list(items: Sequence[object] | set[str]) -> str:
    return ", ".join(str(item) for item in (sorted(items) if isinstance(items, set) else items))
