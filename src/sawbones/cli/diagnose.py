"""sawbones diagnose: from a script, or a recorded run, to a root cause."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from sawbones.capture.freezing import DIAGNOSE_LIMIT_MB
from sawbones.cli import outputs, values
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
from sawbones.store.recordings import RECORDINGS

if TYPE_CHECKING:
    from sawbones.schema import Run

DESCRIPTION = """Observe a training script, run the experiments that separate the suspects, and say what is wrong.

The script runs in a private file system and network: nothing of yours is overwritten. Where the system
refuses that, calls of Python are redirected instead; the first line says which (docs/how-to/isolation.md).
With a recorded run folder instead of a script, the checks read that recording; experiments need the script.
Exit status: 0 healthy, 1 sick or unexplained, 2 usage error, 3 the script crashed, 4 inconclusive or interrupted."""

_WITH_VALUE = {
    "--allow",
    "--baseline",
    "--good",
    "--write-baseline",
    "--json",
    "--html",
    "--seconds",
    "--steps",
    "--only",
    "--nproc-per-node",
    "--keep-run",
    "--pin",
    "--capture-limit",
    "--from",
    "--loss",
    "--validation",
    "--to",
    *outputs.WITH_VALUE,
}
LAST_LINES, CRASH_LINES = 3, 20  # of what the script printed
CAPTURE_LIMIT_HELP = (
    f"memory and disk for a failing step (default {DIAGNOSE_LIMIT_MB}); larger weights stay "
    "out of bundles"
)


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones diagnose", DESCRIPTION)
    p.add_json()
    p.add_html()
    outputs.add_flags(p)
    p.add_argument(
        "--seconds",
        type=values.above_zero,
        default=600.0,
        metavar="N",
        help="budget for everything together (default 600); where other work has the cores it "
        "takes up to three times as long",
    )
    p.add_argument(
        "--steps", type=values.whole(1), metavar="N", help="observe at most N optimizer steps"
    )
    p.add_argument(
        "--first",
        action="store_true",
        help="end with the first proven cause, without the runs that could find others",
    )
    p.add_argument("--no-experiments", action="store_true", help="only observe and check")
    p.add_only()
    p.add_argument(
        "--nproc-per-node",
        type=values.whole(1, values.MOST_RANKS),
        default=1,
        metavar="N",
        help="run the script on N ranks under torchrun",
    )
    p.add_argument(
        "--keep-run",
        type=values.folder_to_make,
        metavar="FOLDER",
        help="keep the recording of the observed run",
    )
    p.add_argument(
        "--pin",
        type=values.folder_to_make,
        metavar="DIR",
        help="write a regression test for each likely or proven finding there",
    )
    p.add_argument(
        "--capture-limit",
        type=values.above_zero,
        default=DIAGNOSE_LIMIT_MB,
        metavar="MB",
        help=CAPTURE_LIMIT_HELP,
    )
    p.add_argument(
        "--no-capture",
        action="store_true",
        help="write no bundle when a step fails (default: in .sawbones/bundles)",
    )
    p.add_argument("--no-source", action="store_true", help="keep source files out of bundles")
    p.add_argument("--no-data", action="store_true", help="keep batches out of bundles")
    p.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="WHAT",
        help="what the script may reach, comma-separated: network, subprocess, files:PATH (a "
        "folder or file that it really writes to), native (what this machine cannot hold back)",
    )
    p.add_argument(
        "--baseline",
        metavar="FILE",
        help="findings that this file holds are ignored: only new ones count",
    )
    p.add_argument(
        "--good",
        metavar="RUN",
        help="a recording from when it worked: what differs from it is shown",
    )
    p.add_argument(
        "--write-baseline",
        type=values.file_to_write,
        metavar="FILE",
        help="write all findings there and end with 0, to go on with --baseline FILE",
    )
    p.add_argument(
        "--plan",
        action="store_true",
        help="run nothing: print what to do in 5, 15 and 60 minutes, by this script or recording",
    )
    p.add_argument(
        "--from",
        dest="log_format",
        choices=("csv", "mlflow", "tensorboard", "wandb"),
        metavar="FORMAT",
        help="SCRIPT is what another tracker has logged (csv, mlflow, tensorboard, wandb): the "
        "symptoms that its curves show",
    )
    p.add_argument("--loss", metavar="NAME", help="with --from: the curve of the training loss")
    p.add_argument(
        "--validation", metavar="NAME", help="with --from: the curve of the evaluation loss"
    )
    p.add_argument("--to", type=values.tracker, metavar="TRACKER", help=values.TRACKER_HELP)
    p.add_argument("--quiet", action="store_true", help="one line per finding, no progress")
    p.add_argument(
        "--output", action="store_true", help="show all that the script printed, not its last lines"
    )
    p.add_argument(
        "script",
        metavar="SCRIPT",
        help="training script (or -m MODULE, as for python), or a recorded run folder",
    )
    p.add_script_arguments()
    return p


def _last_recording(script: str) -> Run | None:
    """The newest recording of this script as it is now: what it cleared is still cleared."""
    from sawbones.schema.errors import SawbonesError
    from sawbones.store import find_runs, read_run

    path = Path(script).resolve()
    for folder in reversed(find_runs(RECORDINGS)):
        if not path.is_file() or path.stat().st_mtime > folder.joinpath("run.db").stat().st_mtime:
            continue
        try:
            known = read_run(folder)
        except SawbonesError:
            continue
        if Path(known.script).resolve() == path:
            return known
    return None


def run(args: list[str]) -> None:
    own, theirs = split_script(args, _WITH_VALUE, parser())
    given = parser().parse_args([*own, *theirs[:1]])
    given.args = theirs[1:]
    if given.log_format:
        _from_log(given)
    recorded = bool(given.script) and is_run_folder(Path(given.script))
    if not recorded:
        existing_script(given.script)
        readable_source(given.script)
    if given.keep_run and is_run_folder(Path(given.keep_run)):
        usage_error(f"--keep-run {given.keep_run} holds a recorded run already: name another")
    outputs.reject_clashes(given)
    if given.baseline and given.write_baseline:
        usage_error("--baseline reads and --write-baseline writes: give one of them")
    if given.good and not is_run_folder(Path(given.good)):
        usage_error(
            f"--good {given.good} is no recorded run. Record one where it works: sawbones run "
            "--out good train.py"
        )
    from sawbones.diagnosis import diagnose_run
    from sawbones.store import read_run

    if given.plan:
        from sawbones.lookup.plan import plan

        known = read_run(given.script) if recorded else _last_recording(given.script)
        script = known.script if known and recorded else given.script
        argv = known.argv if known and recorded else given.args
        print(plan(script, argv, known))
        raise SystemExit(0)
    with ctrl_c.collected("interrupted: the diagnosis so far follows"):
        if recorded:
            found = read_run(given.script)
            diagnosis = diagnose_run(
                found, given.only, _accepted(found.script, given), _good(given)
            )
        else:
            diagnosis = _session(given)
        status = _show(diagnosis, given)
        if given.write_baseline:
            _write_baseline(diagnosis, given)
            status = 0 if diagnosis.report.verdict == "sick" else status
        raise SystemExit(INTERRUPTED if ctrl_c.came() and status == 0 else status)


def _from_log(given: argparse.Namespace) -> NoReturn:
    from sawbones.cli.narration import reading
    from sawbones.diagnosis.curves import diagnose_log
    from sawbones.integrations.logs import read_log
    from sawbones.report.json_report import exit_code, to_json, write_json
    from sawbones.schema.errors import SawbonesError

    outputs.reject_clashes(given)
    try:
        with reading(given.quiet) as tell:
            log = read_log(given.log_format, given.script, *given.args, tell=tell)
        report = diagnose_log(log, given.loss, given.validation)
    except SawbonesError as error:
        usage_error(str(error))
    if given.json and given.json != "-":
        write_json(report, given.json)
    failed = outputs.write_files(report, given)
    if given.json == "-":
        say(json.dumps(to_json(report), indent=2, ensure_ascii=False))
    else:
        outputs.print_report(report, given)
    if failed:
        usage_error("; ".join(failed))
    raise SystemExit(exit_code(report))


def _accepted(script: str, given: argparse.Namespace):  # type: ignore[no-untyped-def]
    from sawbones.diagnosis.accepted import accepted_by
    from sawbones.schema.errors import SawbonesError

    try:
        return accepted_by(Path(script).absolute().parent, given.baseline)
    except SawbonesError as error:
        usage_error(str(error))


def _good(given: argparse.Namespace):  # type: ignore[no-untyped-def]
    from sawbones.store import read_run

    return read_run(given.good) if given.good else None


def _write_baseline(diagnosis, given: argparse.Namespace) -> None:  # type: ignore[no-untyped-def]
    from sawbones.diagnosis.accepted import write_baseline

    count = write_baseline(Path(given.write_baseline), diagnosis.found)
    say(
        f"sawbones: wrote {given.write_baseline} ({count} finding{'s' * (count != 1)}). New ones "
        f"only, from now on: sawbones diagnose --baseline {given.write_baseline} {given.script}",
        error=True,
    )


def _session(given: argparse.Namespace):  # type: ignore[no-untyped-def]
    from sawbones.capture.keeping import Capture
    from sawbones.cli.narration import narration
    from sawbones.diagnosis import diagnose_script
    from sawbones.isolation.allowing import split

    settings = {
        "seconds": given.seconds,
        "steps": given.steps,
        "experiments": not given.no_experiments,
        "first": given.first,
        "only": given.only,
        "num_ranks": given.nproc_per_node,
        "allow": split(given.allow),
        "keep_run": Path(given.keep_run).absolute() if given.keep_run else None,
        "accepted": _accepted(given.script, given),
        "good": _good(given),
        "capture": None
        if given.no_capture
        else Capture(not given.no_source, not given.no_data, given.capture_limit),
    }
    with narration(given.quiet, given.seconds) as told:
        return diagnose_script(
            given.script,
            tuple(given.args),
            say=told.say,
            progress=told.progress,
            found=told.found,
            **settings,
        )


def _pin(report, folder: Path) -> None:  # type: ignore[no-untyped-def]
    from sawbones.diagnosis.pinning import write_tests

    written = write_tests(
        [f for f in report.findings if f.status != "suspected"], folder, Path.cwd()
    )
    for path in written:
        say(f"sawbones: wrote {path}", error=True)


def _show(diagnosis, given: argparse.Namespace) -> int:  # type: ignore[no-untyped-def]
    from sawbones.fixing import proposed
    from sawbones.report.json_report import exit_code, to_json

    report = proposed(diagnosis.report, diagnosis.run, Path.cwd())
    if given.pin:
        _pin(report, Path(given.pin))
    text = json.dumps(
        {**to_json(report), "bundles": list(map(str, diagnosis.bundles))},
        indent=2,
        ensure_ascii=False,
    )
    failed = _files_not_written(report, diagnosis.run, text, given)
    with reader_may_leave():
        if given.json == "-":
            print(text)
        else:
            outputs.print_report(report, given)
            for path in diagnosis.bundles:
                say(f"Captured step: {path}   (sawbones replay {path})")
            _show_output(diagnosis.output, given, report.verdict == "crashed")
    failed = "; ".join(filter(None, (failed, _not_told(report, given.to))))
    if failed:
        usage_error(failed)
    return exit_code(report)


def _not_told(report, to: str | None) -> str:  # type: ignore[no-untyped-def]
    """Tells the tracker that was asked for; why that failed, where it did."""
    if to is None:
        return ""
    from sawbones.integrations.trackers import tell

    try:
        say(f"sawbones: told {to.partition(':')[0]}: {tell(report, to)}", error=True)
    except Exception as error:  # a tracker has its own ways to fail: no network, no login
        return f"{to} was not told: {error}"
    return ""


def _show_output(text: str, given: argparse.Namespace, crashed: bool) -> None:
    """The script's own words: all of them on request, else the last."""
    lines = text.rstrip().splitlines()
    if not lines or ((given.quiet or given.format != "terminal") and not given.output):
        return
    most = len(lines) if given.output else CRASH_LINES if crashed else LAST_LINES
    head = "What the script printed:" if most >= len(lines) else "The script's last lines:"
    say("\n".join([f"\n{head}", *(f"  {line}" for line in lines[-most:])]))


def _files_not_written(report, run, text: str, given: argparse.Namespace) -> str:  # type: ignore[no-untyped-def]
    """Writes the files that were asked for. Why one could not be written (a full disk, say) is for
    the end, after the diagnosis has been shown.
    """
    from sawbones.schema.errors import SawbonesError

    def write_json(path: Path) -> None:
        path.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")

    def write_page(path: Path) -> None:
        from sawbones.diagnosis.source_files import sources_of
        from sawbones.report.html import write_html

        write_html(report, run, path, sources_of(report, Path.cwd()))

    failed = outputs.write_files(report, given)
    for path, write in ((given.json, write_json), (given.html, write_page)):
        if path and path != "-":
            try:
                write(Path(path))
                wrote(path)
            except OSError as error:
                failed.append(f"{path} could not be written: {error.strerror}")
            except SawbonesError as error:  # a package that is not installed
                failed.append(str(error))
    return "; ".join(failed)
