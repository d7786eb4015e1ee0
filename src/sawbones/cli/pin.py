"""sawbones pin: findings become regression tests."""

from __future__ import annotations

import argparse
import json
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from sawbones.cli import values
from sawbones.cli.arguments import Parser, usage_error
from sawbones.cli.printing import say

if TYPE_CHECKING:
    from sawbones.schema import Finding, Report

MAX_REPORT_BYTES = 64 << 20
DESCRIPTION = """Write a pytest file for every finding: it fails on the broken code and passes once it is mended.

TARGET is a recorded run folder, a report that `sawbones diagnose --json FILE` wrote, or a captured step (a bundle). Start it
in the folder in which the script is started. A crash or a value that is not finite gives a test that needs pytest and torch
alone; a property (causality, shift, masks, event order, ...) gives one line of sawbones.testing; what no property
says is read by the fault's own check.
Exit status: 0 written, 1 nothing to pin or (with --verify) a test that passes on the code as it is, 2 usage error."""


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones pin", DESCRIPTION)
    p.add_argument(
        "--out",
        type=values.folder_to_make,
        default="tests",
        metavar="DIR",
        help="where the tests go (default: tests)",
    )
    p.add_argument(
        "--only",
        type=values.fault_glob,
        default="*",
        metavar="GLOB",
        help="only these faults; suspected ones are pinned when they are named",
    )
    p.add_argument(
        "--verify",
        action="store_true",
        help="run each test once: it has to fail on the code as it is",
    )
    p.add_argument("target", metavar="TARGET", help="a run folder, a report or a bundle")
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    from sawbones.diagnosis.pinning import write_tests
    from sawbones.schema.errors import SawbonesError

    target = Path(given.target)
    try:
        if target.is_file() and target.suffix == ".sawbones":
            _pin_bundle(target, given)
        report = _report(target)
        chosen = [f for f in report.findings if fnmatch(f.fault, given.only)]
        chosen = [f for f in chosen if f.status != "suspected" or given.only != "*"]
        written = write_tests(chosen, Path(given.out), Path.cwd())
    except SawbonesError as error:
        usage_error(str(error))
    if not written:
        say(f"sawbones: nothing to pin in {given.target}{_hint(report, given.only)}")
        raise SystemExit(1)
    for path in written:
        say(f"{path}  fails until it is mended: pytest {path}{_runs(path)}")
    raise SystemExit(0 if not given.verify or _all_fail(written) else 1)


def _pin_bundle(target: Path, given: argparse.Namespace) -> NoReturn:
    from sawbones.capture.bundle import read_bundle
    from sawbones.diagnosis.pinning import pin_bundle

    test, *kept = pin_bundle(read_bundle(target), Path(given.out), Path.cwd())
    say(f"{test}  fails until it is mended: pytest {test}{_runs(test)}")
    for path in kept:
        say(f"{path}  belongs to it: the captured step")
    raise SystemExit(0 if not given.verify or _all_fail([test]) else 1)


def _report(target: Path) -> Report:
    from sawbones.diagnosis import diagnose_run
    from sawbones.store import read_run

    if target.is_dir():
        return diagnose_run(read_run(target)).report
    return read_report(target)


def read_report(target: Path) -> Report:
    from sawbones.report.json_report import ReportNotReadable, from_json

    if not target.is_file():
        usage_error(
            f"no {target}. Give a run folder, a bundle, or a report: sawbones diagnose "
            "--json report.json train.py"
        )
    if target.stat().st_size > MAX_REPORT_BYTES:
        usage_error(f"{target} is larger than {MAX_REPORT_BYTES >> 20} MB: no report is")
    try:
        return from_json(json.loads(target.read_text(encoding="utf-8")))
    except ReportNotReadable as error:
        usage_error(f"{target}: {error}")
    except (ValueError, AttributeError, RecursionError):
        usage_error(
            f"{target} is neither a run folder nor a report. Make one: sawbones diagnose "
            "--json report.json train.py"
        )


def _runs(path: Path) -> str:
    from sawbones.diagnosis.read_back import script_of

    runs = script_of(path.read_text(encoding="utf-8"))
    return f"   (runs {runs})" if runs else ""


def _hint(report: Report, only: str) -> str:
    others: list[Finding] = [
        f for f in report.findings if not fnmatch(f.fault, only) or f.status == "suspected"
    ]
    if not others:
        return ": it has no findings"
    named = ", ".join(f"{f.fault} ({f.status})" for f in others[:5])
    return (
        f" for --only '{only}'. Findings: {named}. Pin one: sawbones pin --only "
        f"{others[0].fault} TARGET"
    )


def _all_fail(written: list[Path]) -> bool:
    import subprocess
    import sys

    passed = []
    for path in written:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)],
            capture_output=True,
            text=True,
        )
        failed = done.returncode == 1
        say(f"{path}: {'fails, as it should' if failed else 'does not fail on the code as it is'}")
        if not failed:
            passed.append(path)
            say(done.stdout[-2000:] + done.stderr[-500:])
    return not passed
