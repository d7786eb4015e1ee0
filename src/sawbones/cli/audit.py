"""sawbones audit: leaks and shifts in the data, tokenizers, and one data set by itself."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

from sawbones.cli import values
from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.guard import reader_may_leave
from sawbones.cli.printing import wrote
from sawbones.observe import ctrl_c

DESCRIPTION = """Looks in the data sets themselves for the cause of a score that is too good, or of a model that fails in use.

leaks     what crosses from one split to another
shift     how production differs from the reference
tokens    what a tokenizer makes of the texts
data      one data set by itself

Data: Parquet, CSV, JSON-lines and Arrow files, folders and globs of them, datasets folders, or module:object for a torch Dataset.
Thresholds come from [tool.sawbones.audit] in pyproject.toml and from --threshold; the report shows them.
Exit status: 0 healthy, 1 findings, 2 usage error, 4 inconclusive or interrupted."""


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones audit", DESCRIPTION)
    actions = p.add_subparsers(dest="action", metavar="ACTION", required=True)
    leaks = actions.add_parser(
        "leaks",
        help="what crosses from one split to another",
        description="Records, near-duplicates, the target, "
        "groups, times and fitted statistics that cross from one split to another.",
    )
    leaks.add_argument("--train", required=True, metavar="DATA", help="training data")
    leaks.add_argument("--test", required=True, metavar="DATA", help="test data")
    leaks.add_argument("--valid", metavar="DATA", help="validation data")
    leaks.add_argument("--label", metavar="COLUMN", help="what is predicted")
    leaks.add_argument(
        "--group", metavar="COLUMN", help="user, patient or document that must be on one side only"
    )
    leaks.add_argument(
        "--time", metavar="COLUMN", help="moment of a row, where the test data has to be later"
    )
    leaks.add_argument(
        "--text",
        metavar="COLUMN",
        help="text to compare for near-duplicates (default: every long text)",
    )
    leaks.add_argument(
        "--fitted",
        metavar="FILE",
        help="scaler, imputer or vocabulary (.json, .txt, or a pickle, which may run code)",
    )
    leaks.add_argument("--no-model", action="store_true", help="train no small model on a sample")
    shift = actions.add_parser(
        "shift",
        help="how production differs from the reference",
        description=(
            "Inputs, labels, predictions, their relation, and the worst segment, in current "
            "data against a reference."
        ),
    )
    shift.add_argument(
        "--reference", required=True, metavar="DATA", help="what the model was trained on"
    )
    shift.add_argument("--current", required=True, metavar="DATA", help="what it meets now")
    shift.add_argument("--label", metavar="COLUMN", help="what is predicted")
    shift.add_argument(
        "--prediction",
        metavar="COLUMN",
        help="what the model said: a class, a score from 0 to 1, or a quantity",
    )
    shift.add_argument(
        "--segment",
        metavar="COLUMNS",
        default="",
        help="columns to look for the worst segment in, e.g. region,device",
    )
    shift.add_argument(
        "--time", metavar="COLUMN", help="moment of a row, to find the date of a jump"
    )
    shift.add_argument(
        "--by",
        choices=("hour", "day", "week"),
        help="window by window, against the windows of the reference (needs --time)",
    )
    shift.add_argument(
        "--false-alarms",
        type=values.above_zero,
        default=0.01,
        metavar="SHARE",
        help="of windows that may alert by chance, with --by (default 0.01)",
    )
    shift.add_argument(
        "--state",
        type=values.file_to_write,
        metavar="FILE",
        help="remembers the windows that were judged, with --by: each alerts once",
    )
    tokens = actions.add_parser(
        "tokens",
        help="what a tokenizer makes of the texts",
        description=(
            "Round trip, unknown and special tokens, lengths, truncation and ids of texts "
            "under a tokenizer."
        ),
    )
    tokens.add_argument(
        "--tokenizer",
        required=True,
        metavar="FILE",
        help="tokenizer.json, or a folder that holds one",
    )
    tokens.add_argument("--data", required=True, metavar="DATA", help="texts")
    tokens.add_argument("--test", metavar="DATA", help="texts of another split, to compare with")
    tokens.add_argument(
        "--text", metavar="COLUMN", help="column of the texts (default: the first long text)"
    )
    tokens.add_argument(
        "--answer", metavar="COLUMN", help="what the model is to say after the text: is it cut off?"
    )
    tokens.add_argument(
        "--max-length", type=values.whole(1), metavar="N", help="tokens that the model takes"
    )
    tokens.add_argument(
        "--vocab-size", type=values.whole(1), metavar="N", help="rows of the embedding"
    )
    tokens.add_argument(
        "--checkpoint-tokenizer",
        metavar="FILE",
        help="tokenizer that the checkpoint was trained with",
    )
    data = actions.add_parser(
        "data",
        help="one data set by itself",
        description=(
            "Doubled, empty and unreadable rows, contradicting labels, classes and infinite "
            "values of one data set."
        ),
    )
    data.add_argument("--train", required=True, metavar="DATA", help="the data set")
    data.add_argument("--label", metavar="COLUMN", help="what is predicted")
    for action in (leaks, shift, data):
        action.add_argument(
            "--ignore",
            default="",
            metavar="COLUMNS",
            help="columns to leave out, e.g. row_id,comment",
        )
    for action in (leaks, shift, tokens, data):
        _shared(action)
    return p


def _shared(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--threshold",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="e.g. auc=0.98 (may be repeated)",
    )
    action.add_argument(
        "--engine", default="duckdb", metavar="NAME", help="duckdb (embedded, the default) or spark"
    )
    action.add_argument(
        "--memory-limit", metavar="SIZE", help="from which the engine spills to disk (default 2GB)"
    )
    action.add_argument(
        "--redact", action="store_true", help="show no values of the data, only their length"
    )
    action.add_argument(
        "--show-data",
        action="store_true",
        help="values of the data also where the report is written to a file (--json, --html)",
    )
    action.add_argument(
        "--json",
        type=values.file_to_write,
        metavar="FILE",
        help="write the report as JSON (- for standard output)",
    )
    action.add_argument(
        "--html",
        type=values.file_to_write,
        metavar="FILE",
        help="write a self-contained HTML report with the distributions side by side",
    )
    action.add_argument("--quiet", action="store_true", help="one line per finding")


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    if given.action == "shift" and given.state and not given.by:
        usage_error("--state remembers windows: say which, e.g. --by day --time COLUMN")
    if given.redact and given.show_data:
        usage_error("--redact and --show-data contradict each other: give one of them")
    from sawbones.schema.errors import SawbonesError

    try:
        report = _report(given)
    except SawbonesError as error:
        usage_error(str(error))
    if ctrl_c.came():  # a library has swallowed it
        raise KeyboardInterrupt
    raise SystemExit(_show(report, given))


def _report(given: argparse.Namespace) -> Any:
    from sawbones import audit

    shared: dict[str, Any] = {
        "engine": given.engine,
        "memory_limit": given.memory_limit,
        # what is written to a file is made to be passed on
        "redact": given.redact or (bool(given.json or given.html) and not given.show_data),
        "thresholds": _thresholds(given.threshold),
    }
    if hasattr(given, "ignore"):
        shared["ignore"] = _columns(given.ignore)
    if given.action == "leaks":
        return audit.leaks(
            given.train,
            given.test,
            valid=given.valid,
            label=given.label,
            group=given.group,
            time=given.time,
            text=given.text,
            fitted=given.fitted,
            model=not given.no_model,
            **shared,
        )
    if given.action == "shift":
        return audit.shift(
            given.reference,
            given.current,
            label=given.label,
            prediction=given.prediction,
            segment=_columns(given.segment),
            time=given.time,
            by=given.by,
            false_alarms=given.false_alarms,
            state=given.state,
            **shared,
        )
    if given.action == "tokens":
        return audit.tokens(
            given.tokenizer,
            given.data,
            test=given.test,
            text=given.text,
            answer=given.answer,
            max_length=given.max_length,
            vocab_size=given.vocab_size,
            checkpoint_tokenizer=given.checkpoint_tokenizer,
            **shared,
        )
    return audit.data(given.train, label=given.label, **shared)


def _columns(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _thresholds(given: list[str]) -> dict[str, float]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        try:
            found[name.strip()] = number = float(value)
        except ValueError:
            number = math.nan
        if not equals or not math.isfinite(number):
            usage_error(f"--threshold {text}: NAME=VALUE was expected, e.g. --threshold auc=0.98")
    return found


def _show(report: Any, given: argparse.Namespace) -> int:
    from sawbones.cli.screen import Screen
    from sawbones.report.json_report import exit_code, to_json, write_json
    from sawbones.report.terminal import render_terminal

    if given.json and given.json != "-":
        write_json(report, given.json)
        wrote(given.json)
    if given.html:
        from sawbones.report.audit_html import write_audit_html

        write_audit_html(report, given.html)
        wrote(given.html)
    with reader_may_leave():
        if given.json == "-":
            print(json.dumps(to_json(report), indent=2, ensure_ascii=False, allow_nan=False))
        else:
            render_terminal(report, Screen(), quiet=given.quiet)
    return exit_code(report)
