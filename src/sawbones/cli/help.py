"""sawbones help [TOPIC]: the overview, the flags of a command, the page of a fault or a symptom."""

from __future__ import annotations

import importlib
from typing import NoReturn

from sawbones.cli.arguments import Parser, usage_error

DESCRIPTION = """Help on a command, a fault, a symptom or an exit status.

Without a topic: what to do first, and all commands."""

START = """Where to begin:
  the script misbehaves          sawbones diagnose train.py
  it runs for hours              sawbones run train.py, then sawbones diagnose on its recording
  only the curves are left       sawbones diagnose --from csv loss.csv
  it crashed                     sawbones diagnose train.py
  a pipeline, before training    sawbones check my.module:subject
  the data sets                  sawbones audit leaks --train T --test E
"""

STATUS = """Exit status of diagnose, check, audit, fix and try:
  0  healthy, or nothing came of it
  1  sick or unexplained: a likely or proven finding, or an illness without a cause
  2  usage error
  3  the script crashed
  4  inconclusive or interrupted
`sawbones run` keeps the status of the script."""

TOPICS = {"exit-status": STATUS}


def parser() -> Parser:
    p = Parser("sawbones help", DESCRIPTION)
    p.add_argument(
        "topic",
        nargs="*",
        metavar="TOPIC",
        help="a command (diagnose), a fault (model.causal-leak), a symptom (does-not-learn), or "
        "exit-status",
    )
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    from sawbones.cli.main import COMMANDS, overview

    topic = " ".join(given.topic)
    if not topic:
        print(f"{START}\n{overview()}")
    elif topic in TOPICS:
        print(TOPICS[topic])
    elif given.topic[0] in COMMANDS:
        importlib.import_module(f"sawbones.cli.{given.topic[0]}").run([*given.topic[1:], "--help"])
    else:
        print(_page(topic))
    raise SystemExit(0)


def _page(topic: str) -> str:
    from sawbones.schema import faults
    from sawbones.symptoms import all_symptoms

    symptoms = {watched.symptom: watched.page for watched in all_symptoms()}
    if topic not in faults() and topic not in symptoms:
        _unknown(topic, [*faults(), *symptoms, *TOPICS])
    if topic in symptoms:
        from inspect import cleandoc

        return f"# {topic}\n\n{cleandoc(symptoms[topic])}"
    from sawbones.pages import explain

    return explain(topic)


def _unknown(topic: str, known: list[str]) -> NoReturn:
    import difflib

    from sawbones.cli.main import COMMANDS

    near = difflib.get_close_matches(topic, [*COMMANDS, *known], n=3, cutoff=0.4)
    listed = f" Nearest: {', '.join(near)}." if near else ""
    usage_error(f"no help on {topic!r}.{listed} All commands: sawbones help")
