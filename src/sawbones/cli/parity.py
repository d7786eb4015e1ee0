"""sawbones parity: what serves, beside what was trained, on golden rows."""

from __future__ import annotations

import argparse
import json
from typing import Any

from sawbones.cli import values
from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.guard import reader_may_leave

DESCRIPTION = """Ask two sides the same rows and say where they part first, and by how much.

Each side is my.module:name or path/to/file.py:name: a model, a function of rows (one that asks a service, say), a list of
(name, step) that are applied in order, or a function without arguments that makes one of these. Models get tensors and are compared
layer by layer; functions get NumPy arrays. Nothing is put into .eval() for you: that is part of what is compared.

    sawbones parity my.module:trained my.module:served --inputs rows.npz --write golden.npz
    sawbones parity my.module:served --inputs golden.npz        # in CI: against the answers that were kept

Exit status: 0 the answers agree, 1 they do not, 2 usage error, 3 a side raised, 4 interrupted."""


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones parity", DESCRIPTION)
    p.add_argument(
        "--inputs",
        required=True,
        metavar="FILE",
        help=".npz with one array for each argument, a row for each sample (or one .npy)",
    )
    p.add_argument(
        "--tolerance",
        type=values.above_zero,
        metavar="SHARE",
        help="largest difference allowed, as a share of the largest value (default 1e-4)",
    )
    p.add_argument(
        "--batch",
        type=values.whole(1),
        metavar="N",
        help="rows in one call of the served side (default all; 1 as most services are asked)",
    )
    p.add_argument(
        "--write",
        type=values.file_to_write,
        metavar="FILE",
        help="keep the rows and the trained answers as a golden file (it holds the rows themselves)",
    )
    p.add_json()
    p.add_argument("--quiet", action="store_true", help="one line per finding")
    p.add_argument("sides", nargs="+", metavar="SIDE", help="TRAINED SERVED, or SERVED alone")
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    if len(given.sides) > 2:
        usage_error(f"two sides at most were expected, {len(given.sides)} were given")
    if given.write and len(given.sides) < 2:
        usage_error("--write keeps the answers of the trained side: name both sides")
    from sawbones.parity.engine import KEPT, TOLERANCE, compare
    from sawbones.parity.golden import read_golden, write_golden
    from sawbones.schema.errors import SawbonesError
    from sawbones.triage.subject import load_named

    try:
        golden = read_golden(given.inputs)
        found = [load_named(spec, "parity") for spec in given.sides]
        trained = found[0] if len(found) == 2 else None
        compared = compare(
            trained,
            found[-1],
            golden,
            names=(given.sides[0] if trained is not None else KEPT, given.sides[-1]),
            tolerance=given.tolerance or TOLERANCE,
            batch=given.batch,
        )
    except SawbonesError as error:
        usage_error(str(error))
    if given.write and compared.answers is not None:
        write_golden(given.write, golden, compared.answers)
    raise SystemExit(_show(compared.report, given))


def _show(report: Any, given: argparse.Namespace) -> int:
    from sawbones.cli.screen import Screen
    from sawbones.report.json_report import exit_code, to_json, write_json
    from sawbones.report.terminal import render_terminal

    if given.json and given.json != "-":
        write_json(report, given.json)
    with reader_may_leave():
        if given.json == "-":
            print(json.dumps(to_json(report), indent=2, ensure_ascii=False, allow_nan=False))
        else:
            render_terminal(report, Screen(), quiet=given.quiet)
    return exit_code(report)
