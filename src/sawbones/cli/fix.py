"""sawbones fix: the patch for each cause, tried on the script before it is shown."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sawbones.cli import values
from sawbones.cli.arguments import (
    Parser,
    existing_script,
    is_run_folder,
    readable_source,
    split_script,
    usage_error,
)
from sawbones.cli.guard import INTERRUPTED, reader_may_leave
from sawbones.cli.printing import say, wrote
from sawbones.observe import ctrl_c

if TYPE_CHECKING:
    from sawbones.diagnosis import Diagnosis
    from sawbones.fixing import Fixed
    from sawbones.trials.bench import Patient

DESCRIPTION = """Diagnose a training script, write the smallest change for each cause in the script's own names, run it
again with the change from the same seed, and show the diff with what it did.

TARGET is a script, a report that `sawbones diagnose --json FILE` wrote, or a recorded run folder. The script is not
changed without --apply. A patch is *verified* when the fault is gone, its illness is gone and nothing new fired;
one that was tried and did not heal is not shown.
Exit status: that of diagnose; with --apply 0 once every cause has a patch written; with --check 1 if there is a patch, else 0."""

_WITH_VALUE = {"--json", "--html", "--seconds", "--steps", "--only", "--allow"}


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones fix", DESCRIPTION)
    p.add_argument(
        "--apply", action="store_true", help="write verified patches; originals are kept"
    )
    p.add_argument(
        "--unsafe", action="store_true", help="with --apply: also patches that are not verified"
    )
    p.add_argument(
        "--check", action="store_true", help="write nothing and end with 1 if there is a patch"
    )
    p.add_json()
    p.add_html()
    p.add_argument(
        "--seconds",
        type=values.above_zero,
        default=900.0,
        metavar="N",
        help="budget for everything together (default 900)",
    )
    p.add_argument(
        "--steps", type=values.whole(1), metavar="N", help="observe at most N optimizer steps"
    )
    p.add_only()
    p.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="WHAT",
        help="what the script may reach, as for diagnose",
    )
    p.add_argument("--quiet", action="store_true", help="the diffs alone")
    p.add_argument("target", metavar="TARGET", nargs="?", default="", help="script, report or run")
    p.add_script_arguments()
    return p


def run(args: list[str]) -> None:
    own, theirs = split_script(args, _WITH_VALUE, parser())
    given = parser().parse_args([*own, *theirs[:1]])
    given.args = theirs[1:]
    if given.apply and given.check:
        usage_error("--apply writes and --check writes nothing: give one of them")
    if given.unsafe and not given.apply:
        usage_error("--unsafe goes with --apply")
    target = Path(given.target)
    if not is_run_folder(target) and target.suffix != ".json":
        existing_script(given.target)
        if target.suffix == ".ipynb":
            usage_error(
                f"{given.target} is a notebook: its patches are shown by cell and are not tried. "
                f"sawbones diagnose {given.target}"
            )
        readable_source(given.target)
    with ctrl_c.collected("interrupted: what is known so far follows"):
        status = _fix(given)
        raise SystemExit(INTERRUPTED if ctrl_c.came() and status == 0 else status)


def _fix(given: argparse.Namespace) -> int:
    from sawbones.cli.narration import narration
    from sawbones.fixing import fix_diagnosed
    from sawbones.isolation.allowing import split

    began = time.monotonic()
    with narration(given.quiet or given.json == "-", given.seconds) as told:
        found, patient = _diagnosed(given, told.say, told.progress)
        fixed = fix_diagnosed(
            found,
            patient,
            seconds=max(5.0, given.seconds - (time.monotonic() - began)),
            allow=split(given.allow),
            say=told.say,
            progress=told.progress,
        )
    _write_reports(given, fixed, found)
    if given.json != "-":
        with reader_may_leave():
            _show(given, fixed)
    if given.check:
        return int(any(f.fix is not None and f.fix.patch for f in fixed.report.findings))
    return _applied(given, fixed) if given.apply else _status(fixed)


def _diagnosed(given, say_, progress) -> tuple[Diagnosis, Patient]:  # type: ignore[no-untyped-def]
    from sawbones.diagnosis import diagnose_run, diagnose_script
    from sawbones.isolation.allowing import split
    from sawbones.store import read_run
    from sawbones.trials.bench import Patient

    target = Path(given.target)
    if is_run_folder(target):
        recorded = read_run(target)
        existing_script(recorded.script)
        patient = Patient(recorded.script, recorded.argv, Path.cwd())
        return diagnose_run(recorded, given.only), patient
    script, known = given.target, None
    if target.suffix == ".json":
        from sawbones.cli.pin import read_report

        known = read_report(target)
        script = known.script
        existing_script(script)
    found = diagnose_script(
        script,
        tuple(given.args),
        seconds=given.seconds,
        steps=given.steps,
        only=given.only,
        allow=split(given.allow),
        experiments=known is None,
        say=say_,
        progress=progress,
    )
    if known is not None:  # its experiments have been run: only the recording was missing
        found = replace(found, report=known)
    return found, Patient(script, tuple(given.args), Path.cwd())


def _write_reports(given: argparse.Namespace, fixed: Fixed, found: Diagnosis) -> None:
    from sawbones.diagnosis.source_files import sources_of
    from sawbones.report.json_report import to_json

    text = json.dumps(to_json(fixed.report), indent=2, ensure_ascii=False)
    if given.json == "-":
        print(text)
    elif given.json:
        Path(given.json).write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        wrote(given.json)
    if given.html:
        from sawbones.report.html import write_html

        sources = sources_of(fixed.report, Path.cwd())
        write_html(fixed.report, found.run, Path(given.html), sources)
        wrote(given.html)


def _show(given: argparse.Namespace, fixed: Fixed) -> None:
    from sawbones.cli.screen import Screen
    from sawbones.report.terminal import render_fixes, render_terminal

    screen = Screen()
    certain = [f for f in fixed.report.findings if f.status != "suspected"]
    if not certain and not given.quiet:
        render_terminal(fixed.report, screen)
        say("Nothing to fix: no likely or proven cause.")
        return
    render_fixes(fixed.report, screen, quiet=given.quiet)
    offered = len(fixed.patches) + len(fixed.unverified)
    if given.quiet or given.apply or not offered:
        return
    if fixed.patches:
        say(f"To write the verified ones: sawbones fix --apply {given.target}")
    else:
        say("None is verified. To write them all the same: --apply --unsafe")


def _applied(given: argparse.Namespace, fixed: Fixed) -> int:
    from sawbones.fixing.editing import EditRefused
    from sawbones.fixing.writing import write

    chosen = [*fixed.patches, *(fixed.unverified if given.unsafe else ())]
    if fixed.together is not None and not fixed.together.verified and not given.unsafe:
        usage_error(
            f"the patches do not go together ({fixed.together.text}): nothing was written. One "
            "cause at a time: sawbones fix --apply --only FAULT"
        )
    if not chosen:
        say("sawbones: no verified patch, nothing was written", error=True)
        return _status(fixed)
    try:
        written = write(chosen, Path.cwd())
    except EditRefused as error:
        usage_error(f"{error}: nothing was written. One cause at a time: --only FAULT")
    for path, original in written:
        say(f"sawbones: wrote {path} (as it was: {original})", error=True)
    mended = {patch.fault for patch in chosen}
    certain = {f.fault for f in fixed.report.findings if f.status != "suspected"}
    return 0 if certain <= mended else _status(fixed)


def _status(fixed: Fixed) -> int:
    from sawbones.report.json_report import exit_code

    return exit_code(fixed.report)
