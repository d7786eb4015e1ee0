"""sawbones run: the user's script to its end, recorded."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sawbones.capture.freezing import RUN_LIMIT_MB
from sawbones.cli import values
from sawbones.cli.arguments import Parser, existing_script, split_script, usage_error
from sawbones.cli.guard import reader_may_leave

if TYPE_CHECKING:
    from sawbones.live.stopping import StopOn

DESCRIPTION = """Run a training script exactly as `python SCRIPT ARGS` would, and record it.

The training is bit-identical to an unwatched run. A step that fails (exception, NaN, loss spike) becomes a bundle in the run
folder: sawbones replay BUNDLE executes it again. Exit status: the script's own."""
LAUNCHER_SECONDS = 5.0  # for a launcher that got Ctrl-C itself to end its ranks
CAPTURE_LIMIT_HELP = (
    f"memory for what replaying a failing step needs (default {RUN_LIMIT_MB}); larger weights "
    "stay out of bundles"
)


WITH_VALUES = {"--out", "--nproc-per-node", "--capture-limit", "--on-finding", "--stop-on", "--to"}


def _stop_on(text: str) -> StopOn:
    from sawbones.live.stopping import StopOn

    try:
        return StopOn.parsed(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones run", DESCRIPTION)
    p.add_argument(
        "--out",
        type=values.folder_to_make,
        metavar="FOLDER",
        help="run folder (default: .sawbones/<script>-<date>-<time>)",
    )
    p.add_argument(
        "--quiet", action="store_true", help="no live warnings and no summary at the end"
    )
    p.add_argument(
        "--on-finding",
        action="append",
        default=[],
        metavar="COMMAND|URL",
        help="give each thing that is found, as JSON, to a command or post it; may be repeated",
    )
    p.add_argument(
        "--stop-on",
        type=_stop_on,
        metavar="WHAT",
        help="end the script, as Ctrl-C does, with status 1 at nonfinite, likely, proven or "
        "a fault id; several with commas",
    )
    p.add_argument(
        "--page",
        action="store_true",
        help="a page that follows the run, on this machine alone; prints its link",
    )
    p.add_argument(
        "--no-deep",
        action="store_true",
        help="never take a deep step (operator trace, influence map)",
    )
    p.add_argument(
        "--capture-limit",
        type=values.above_zero,
        default=RUN_LIMIT_MB,
        metavar="MB",
        help=CAPTURE_LIMIT_HELP,
    )
    p.add_argument("--to", type=values.tracker, metavar="TRACKER", help=values.TRACKER_HELP)
    p.add_argument("--no-capture", action="store_true", help="write no bundle when a step fails")
    p.add_argument("--no-source", action="store_true", help="keep source files out of bundles")
    p.add_argument(
        "--no-data",
        action="store_true",
        help="keep batches out of bundles, and samples off the page",
    )
    p.add_argument(
        "--nproc-per-node",
        type=values.whole(1, values.MOST_RANKS),
        metavar="N",
        help="start N ranks under torchrun and record each",
    )
    p.add_argument(
        "script", metavar="SCRIPT", help="the training script; or -m MODULE, as for python"
    )
    p.add_argument(
        "args",
        nargs="*",
        metavar="ARGS",
        help="its own arguments, passed on untouched",
    )
    return p


def run(args: list[str]) -> None:
    own, theirs = split_script(args, WITH_VALUES, parser())
    with reader_may_leave():
        given = parser().parse_args([*own, *theirs[:1]])
    given.args = theirs[1:]
    existing_script(given.script, folders=True)
    rank = _rank()
    if given.nproc_per_node and "RANK" not in os.environ:
        raise SystemExit(_torchrun(given))
    from sawbones.capture.freezing import attach
    from sawbones.observe.launch import Session, run_script
    from sawbones.observe.options import Options, running
    from sawbones.observe.printing import die_of_interrupt
    from sawbones.observe.saying import say
    from sawbones.store.recordings import new_run_folder
    from sawbones.store.uncommitted import keep_uncommitted

    named = (
        given.out
        or os.environ.get("SAWBONES_RUN_FOLDER")
        or (_folder_of_all_ranks(given.script) if "RANK" in os.environ else None)
    )
    folder = Path(named or new_run_folder(given.script)).absolute()
    if folder.exists() and (folder / "run.db").exists() and "RANK" not in os.environ:
        usage_error(
            f"{folder} holds a recorded run already. Choose another folder: sawbones run "
            f"--out FOLDER {given.script}"
        )
    if rank == 0:
        keep_uncommitted(folder, Path.cwd())
    if given.page and rank == 0:
        _open_page(folder)
    options = Options(deep_steps=(), deep_every=0) if given.no_deep else running()
    options = replace(options, samples=given.page and not given.no_data and rank == 0)
    from sawbones.live import Alerts, attach_live_warnings

    def prepare(session: Session) -> None:
        if not given.quiet and rank == 0:
            session.on_finish.append(
                lambda ended: _summary(folder, ended.recorder is not None, given.capture_limit)
            )
        if given.to and rank == 0:
            session.on_finish.append(lambda ended: _tell(folder, given.to))
        if not given.quiet or given.on_finding or given.stop_on:
            attach_live_warnings(session, given.stop_on, Alerts(given.on_finding), given.quiet)
        if not given.no_capture:
            attach(
                session,
                limit_mb=given.capture_limit,
                source=not given.no_source,
                data=not given.no_data,
            )

    status, session = run_script(
        given.script, given.args, folder, options, rank=rank, prepare=prepare
    )
    if session.recorder is not None and session.recorder.stop_wanted:
        say(f"sawbones: ended by --stop-on: {session.recorder.stop_wanted}")
        raise SystemExit(1)
    if session.ending is not None and session.ending.kind == "interrupted":
        die_of_interrupt()
    raise SystemExit(status)


def _open_page(folder: Path) -> None:
    """In a process of its own: the training pays nothing for it."""
    from sawbones.cli.page import link_lines, start_beside
    from sawbones.observe.saying import say

    try:
        link = start_beside(folder)
    except (OSError, subprocess.SubprocessError) as error:
        say(f"sawbones: no page: {error}. Training goes on; later: sawbones page {folder}")
        return
    say("\n".join(link_lines(link)) if link else "sawbones: the page could not be started")


def _rank() -> int:
    text = os.environ.get("RANK", "0")
    try:
        return values.whole(0)(text)
    except argparse.ArgumentTypeError as error:
        usage_error(f"RANK={error}, as torchrun sets it")


def _summary(folder: Path, torch_was_used: bool, limit_mb: float) -> None:
    from sawbones.observe.saying import say

    if not torch_was_used:
        say("sawbones: the script never imported torch; nothing was recorded.")
        return
    try:
        from sawbones.diagnosis.closing import closing_lines

        say("\n".join(closing_lines(folder, limit_mb)))
    except Exception as error:  # a full disk, for one: the script's own status stands
        say(f"sawbones: no summary of {folder}: {error}")


def _tell(folder: Path, to: str) -> None:
    from sawbones.integrations.trackers import tell_of_run
    from sawbones.store import RunNotFound, read_run

    with suppress(RunNotFound):  # torch was never imported
        tell_of_run(read_run(folder), to)


def _folder_of_all_ranks(script: str) -> str | None:
    """One name for all ranks of a launcher, without asking each other: the time at which the
    launcher itself was started.
    """
    import time

    from sawbones.store.recordings import RECORDINGS

    try:
        ticks = int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[19])
        booted = next(
            int(line.split()[1])
            for line in Path("/proc/stat").read_text().splitlines()
            if line.startswith("btime")
        )
    except (OSError, IndexError, ValueError, StopIteration):
        return None
    began = time.localtime(booted + ticks / os.sysconf("SC_CLK_TCK"))
    name = f"{Path(script).stem}-{time.strftime('%Y%m%d-%H%M%S', began)}-{os.getppid()}"
    return str(RECORDINGS / name)


def _torchrun(given: argparse.Namespace) -> int:
    from sawbones.store.recordings import new_run_folder

    folder = Path(given.out or new_run_folder(given.script)).absolute()
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(given.nproc_per_node),
    ]
    command += [
        "-m",
        "sawbones",
        "run",
        "--out",
        str(folder),
        *(["--quiet"] if given.quiet else []),
        *(["--no-deep"] if given.no_deep else []),
        *(f"--on-finding={target}" for target in given.on_finding),
        *([f"--stop-on={','.join(given.stop_on.words)}"] if given.stop_on else []),
        *(["--page"] if given.page else []),
        *([f"--to={given.to}"] if given.to else []),
        *(f"--no-{name}" for name in ("capture", "source", "data") if getattr(given, f"no_{name}")),
        f"--capture-limit={given.capture_limit:g}",
        given.script,
        *given.args,
    ]
    return _waited_for(subprocess.Popen(command))


def _waited_for(launcher: subprocess.Popen[bytes]) -> int:
    """Its own status. A terminal gives Ctrl-C to all of its processes; where it reached this one
    alone, the launcher is asked to end its ranks.
    """
    while True:
        try:
            status = launcher.wait()
            break
        except KeyboardInterrupt:
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                launcher.wait(LAUNCHER_SECONDS)
            if launcher.poll() is None:
                launcher.send_signal(signal.SIGINT)
    if status == -signal.SIGINT:
        raise KeyboardInterrupt
    return status if status >= 0 else 128 - status
