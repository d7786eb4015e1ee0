"""A graded answer as one HTML file without a script: points and why, what was answered, the expert's
path with outputs and times, the model answer and the patch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from sawbones.practise.answers import Answer
from sawbones.practise.exercises import LEVELS, Exercise
from sawbones.practise.expert import Step
from sawbones.practise.grading import Line, total
from sawbones.practise.records import Record
from sawbones.report.html_parts import diff_block, escape

GOOD, FAIR = 80, 50  # points from which the heading is green, and below which it is red


@dataclass(frozen=True)
class Graded:
    exercise: Exercise
    record: Record
    answer: Answer
    lines: Sequence[Line]
    steps: Sequence[Step]
    minutes: float
    model_answer: str


def page(graded: Graded) -> str:
    style = (files("sawbones.report") / "page.css").read_text(encoding="utf-8")
    points = total(graded.lines)
    sections = [_points(graded), _answer(graded), _path(graded), _model(graded)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
        '\'unsafe-inline\'"><meta name="color-scheme" content="light dark">'
        f"<title>{points:g} of 100 points · Sawbones</title><style>{style}</style></head>\n"
        f'<body class="{_class(points)}">{_header(graded, points)}<main>{"".join(sections)}</main>'
        "</body></html>\n"
    )


def _class(points: float) -> str:
    if points >= GOOD:
        return "healthy"
    return "unexplained" if points >= FAIR else "sick"


def _header(graded: Graded, points: float) -> str:
    record = graded.record
    took = f"{graded.minutes:.0f} of {record.minutes:g} minutes"
    said = [f"level {record.level}: {LEVELS[record.level]}", took, f"{record.hints} hints"]
    into = f" --into {record.script}" if record.healthy else ""
    layer = f" --layer {record.layer}" if record.layer else ""
    again = f"sawbones practise --seed {record.seed} --level {record.level}{layer}{into}"
    return (
        f'<header><p class="brand">Sawbones<span class="quiet">practise</span></p><h1><span '
        f'class="verdict">{points:g} of 100 points</span>{escape(_cause(graded.exercise))}</h1>'
        f'<p class="quiet">{escape(" · ".join(said))}</p>'
        f'<p class="quiet">The same exercise again: <code>{escape(again)}</code></p></header>'
    )


def _cause(exercise: Exercise) -> str:
    return ", ".join(exercise.faults) if exercise.faults else "The script was healthy"


def _points(graded: Graded) -> str:
    rows = "".join(
        f'<tr><td>{escape(line.part)}</td><td class="num">{line.points:g}</td>'
        f'<td class="num">{line.most:g}</td><td>{escape(line.why)}</td></tr>'
        for line in graded.lines
    )
    return (
        '<section id="points"><h2>Points</h2><table><thead><tr><th>part</th>'
        '<th class="num">points</th><th class="num">of</th><th>why</th></tr></thead><tbody>'
        f"{rows}</tbody></table></section>"
    )


def _answer(graded: Graded) -> str:
    answer = graded.answer
    known = [
        ("cause", ", ".join(answer.faults) or "healthy"),
        ("line", ", ".join(map(str, answer.lines)) or "none"),
        ("because", answer.because or "nothing was said"),
        ("claims", "; ".join(claim.text for claim in answer.claims) or "none"),
        ("command", answer.command),
    ]
    rows = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in known)
    texts = "".join(
        f"<h3>{name}</h3>{_block(text)}"
        for name, text in (("patch", answer.fix), ("test", answer.test), ("report", answer.report))
        if text.strip()
    )
    return (
        '<section id="answer"><h2>Your answer</h2><table class="facts">'
        f"<tbody>{rows}</tbody></table>{texts}</section>"
    )


def _path(graded: Graded) -> str:
    steps = "".join(
        f"<h3>{number}. {escape(step.why)}</h3>"
        + _block("\n".join((f"$ {step.command}   # {step.seconds:.1f} s", *step.output)))
        for number, step in enumerate(graded.steps, 1)
    )
    seconds = sum(step.seconds for step in graded.steps)
    return (
        f'<section id="path"><h2>The expert\'s path</h2>{steps}'
        f'<p class="quiet">{seconds:.0f} s of machine time in all.</p></section>'
    )


def _model(graded: Graded) -> str:
    text, _, _ = graded.model_answer.partition("\nThe fix:\n")
    patch = diff_block(graded.exercise.fix) if graded.exercise.faults else ""
    parts = text.removeprefix("## Model answer").strip().split("\n\n")
    body = "".join(
        f"<h3>{escape(part[4:])}</h3>" if part.startswith("### ") else f"<p>{escape(part)}</p>"
        for part in parts
    )
    return f'<section id="model"><h2>Model answer</h2>{body}{patch}</section>'


def _block(text: str) -> str:
    return (
        '<figure class="source"><pre tabindex="0"><code class="plain">'
        f"{escape(text)}</code></pre></figure>"
    )
