"""sawbones check: the ordered triage of a subject."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sawbones.cli import outputs, values
from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.guard import reader_may_leave
from sawbones.cli.printing import wrote

if TYPE_CHECKING:
    from sawbones.triage import Grades, Triage

LAYERS = ("data", "pipeline", "model", "loss", "optimizer", "loop", "evaluation")

DESCRIPTION = """Look at model, data, loss and optimizer layer by layer, cheapest first, and stop at the first layer that fails.

SUBJECT is my.module:name or path/to/file.py:name. It has model(), data(), loss(outputs, batch) and optimizer(parameters):
sawbones.Subject(model=..., data=..., loss=..., optimizer=...), or a dict, module or class with these names. Each layer looks at the
pieces directly, then at a short training under the recorder. Grades may stand in pyproject.toml:

    [tool.sawbones]
    soft = ["optimizer.decay-on-norm-bias"]   # reported, does not fail
    hard = ["pipeline.*"]                     # fails even when it is only suspected
    skip = ["loop.memory-leak"]               # not looked at; the report says so

Exit status: 0 healthy, 1 sick or unexplained, 2 usage error, 3 the subject crashed, 4 inconclusive or interrupted."""


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones check", DESCRIPTION)
    p.add_argument(
        "--layer",
        action="append",
        choices=LAYERS,
        metavar="LAYER",
        help=f"only this one, may be given again: {', '.join(LAYERS)}",
    )
    p.add_only()
    p.add_argument("--keep-going", action="store_true", help="go on after a layer that fails")
    for grade, meaning in (
        ("soft", "report these and do not fail"),
        ("hard", "fail on these even when they are only suspected"),
        ("skip", "do not look at these; the report says so"),
    ):
        p.add_argument(
            f"--{grade}",
            action="append",
            default=[],
            metavar="GLOB",
            help=f"{meaning}; may be given again",
        )
    p.add_argument(
        "--steps",
        type=values.whole(1),
        default=30,
        metavar="N",
        help="length of the recorded training (default 30)",
    )
    p.add_argument(
        "--seed",
        type=values.whole(0, values.LARGEST_SEED),
        default=0,
        metavar="N",
        help="seed of every fresh start (default 0)",
    )
    p.add_json()
    outputs.add_flags(p)
    p.add_argument("--quiet", action="store_true", help="one line per finding, no progress")
    p.add_argument(
        "subject", metavar="SUBJECT", help="my.module:subject, or path/to/file.py:subject"
    )
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    outputs.reject_clashes(given)
    from sawbones.schema.errors import SawbonesError
    from sawbones.triage import check, load_subject

    try:
        grades = _grades(given)
        subject = load_subject(given.subject)
        layers = tuple(given.layer) if given.layer else LAYERS
        say = _progress(given.quiet)
        triage = check(
            subject,
            layers=layers,
            only=given.only,
            grades=grades,
            keep_going=given.keep_going,
            steps=given.steps,
            seed=given.seed,
            say=say,
        )
    except SawbonesError as error:
        usage_error(str(error))
    raise SystemExit(_show(triage, given))


def _grades(given: argparse.Namespace) -> Grades:
    from sawbones.triage import project_grades

    grades = project_grades(Path.cwd())
    for grade in ("soft", "hard", "skip"):
        grades = grades.with_rules(grade, getattr(given, grade), f"--{grade}")
    return grades


def _progress(quiet: bool) -> Callable[[str, str], None]:
    shown: list[str] = []

    def say(layer: str, text: str) -> None:
        if not quiet:
            new = layer not in shown
            shown.append(layer)
            print(
                f"sawbones: {layer if new else ' ' * len(layer)}  {text}",
                file=sys.stderr,
                flush=True,
            )

    return say


def _show(triage: Triage, given: argparse.Namespace) -> int:
    from sawbones.report.json_report import exit_code, to_json, write_json

    report = triage.report
    if given.json and given.json != "-":
        write_json(report, given.json)
        wrote(given.json)
    failed = outputs.write_files(report, given)
    with reader_may_leave():
        if given.json == "-":
            print(json.dumps(to_json(report), indent=2, ensure_ascii=False))
            return exit_code(report)
        outputs.print_report(report, given)
        if triage.not_reached and not given.quiet and given.format != "lines":
            print(
                f"Not looked at yet: {', '.join(triage.not_reached)}. Go on in spite of "
                "this: --keep-going"
            )
    if failed:
        usage_error("; ".join(failed))
    return exit_code(report)
