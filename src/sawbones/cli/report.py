"""sawbones report RUN: a postmortem of a recorded run, or a folder that reruns to its symptom."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sawbones.cli import values
from sawbones.cli.arguments import Parser, is_run_folder, usage_error
from sawbones.cli.printing import say

if TYPE_CHECKING:
    from sawbones.handover.readme import CapturedStep

DESCRIPTION = """What happened in a recorded run, for others.

--markdown   a postmortem of at most 500 words: symptom, timeline, reproduction, evidence, cause, fix,
             prevention, and the questions that are left open (the default, printed)
--package    a folder to hand over: script, command, seed, versions, metrics, postmortem, and a rerun.py
             that gets to the symptom in under ten minutes without Sawbones. Run twice before it is
             said to work. Data files, and the values of the step that was captured as the run
             went ill, cut to the fewest that still show it, travel only with --show-data;
             secrets are masked."""
SHRINK_SECONDS = 120.0


def run(args: list[str]) -> None:
    p = Parser("sawbones report", DESCRIPTION)
    p.add_argument("run", metavar="RUN", help="a run folder")
    p.add_argument(
        "--markdown",
        nargs="?",
        const="-",
        metavar="FILE",
        type=values.file_to_write,
        help="the postmortem, printed or into FILE",
    )
    p.add_argument("--package", metavar="FOLDER", type=values.folder_to_make, help="where to")
    p.add_argument("--script", metavar="PATH", help="where the script is now")
    p.add_argument("--show-data", action="store_true", help="data files that the script names too")
    p.add_argument("--no-rerun", action="store_true", help="write the folder without trying it")
    given = p.parse_args(args)
    if not is_run_folder(Path(given.run)):
        usage_error(f"{given.run} is no recorded run. Record one: sawbones run train.py")
    if given.package and Path(given.package).is_dir() and any(Path(given.package).iterdir()):
        usage_error(f"--package {given.package} is not empty: name another")
    from sawbones.diagnosis import diagnose_run
    from sawbones.handover.run_package import package
    from sawbones.report.postmortem import postmortem
    from sawbones.schema.errors import SawbonesError
    from sawbones.store import read_run

    try:
        recorded = read_run(given.run)
        report = diagnose_run(recorded).report
        if given.package:
            lines = package(
                recorded,
                report,
                Path(given.script or recorded.script),
                Path(given.package),
                show_data=given.show_data,
                verify=not given.no_rerun,
                step=_captured_step(Path(given.run)) if given.show_data else None,
            )
            for line in lines:
                say(f"sawbones: {line}")
    except SawbonesError as error:
        usage_error(str(error))
    if given.markdown not in (None, "-"):
        Path(given.markdown).write_text(postmortem(report, recorded), encoding="utf-8")
        say(f"sawbones: wrote {given.markdown}")
    elif given.markdown or not given.package:
        say(postmortem(report, recorded).rstrip())
    raise SystemExit(0)


def _captured_step(run: Path) -> CapturedStep | None:
    """The first step that was captured, made small; as it is where it cannot be made smaller."""
    from sawbones.capture.bundle import read_bundle
    from sawbones.capture.shrink import shrink
    from sawbones.capture.trust import is_trusted
    from sawbones.handover.readme import CapturedStep
    from sawbones.schema.errors import SawbonesError

    paths = sorted((run / "bundles").glob("*.sawbones"))
    if not paths:
        return None
    try:
        bundle = read_bundle(paths[0])
        what = f"step {bundle.step}: {bundle.failure.text}"
        if not is_trusted(bundle):  # a stranger's code is not run here
            return None
    except SawbonesError as error:
        say(f"sawbones: the captured step stays out: {str(error).splitlines()[0]}")
        return None
    with tempfile.TemporaryDirectory(prefix="package-") as scratch:
        try:
            small = shrink(bundle, Path(scratch), SHRINK_SECONDS)
        except SawbonesError as error:
            say(f"sawbones: the captured step is not made smaller: {str(error).splitlines()[0]}")
            return CapturedStep(paths[0].stem, what, None, paths[0].read_bytes())
        script = small.script.read_bytes() if small.script is not None else None
        return CapturedStep(paths[0].stem, what, script, small.bundle.read_bytes())
