"""sawbones lab: small broken training scripts with healthy twins; list them, run one, or score
diagnose on all.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from fnmatch import fnmatch
from pathlib import Path

from sawbones.cli import values
from sawbones.cli.arguments import Parser, usage_error
from sawbones.lab.ward import Bed, beds
from sawbones.observe import ctrl_c

MEMBERS = ("checkpoint.safetensors", "command.txt", "metrics.jsonl")

DESCRIPTION = """Training scripts with one known fault each, and their healthy twins.

list         what there is
run FAULT    run one; writes command.txt, metrics.jsonl, checkpoint.safetensors and a tarball of the three, the same every time
bench        diagnose all of them and their twins: confusion matrix, top-1, top-3, located, false alarms, time"""


def parser() -> argparse.ArgumentParser:
    p = Parser("sawbones lab", DESCRIPTION)
    actions = p.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="all faults of the lab")
    listing.add_argument(
        "pattern", nargs="?", default="*", metavar="GLOB", help="only these, e.g. 'loss.*'"
    )
    one = actions.add_parser("run", help="run one fault or its twin")
    one.add_argument("fault", metavar="FAULT", help="a fault id; all of them: sawbones lab list")
    one.add_argument("--healthy", action="store_true", help="the twin without the fault")
    one.add_argument(
        "--out",
        type=values.folder_to_make,
        metavar="DIR",
        help="where to write (default: lab-runs/FAULT-broken or -healthy)",
    )
    one.add_argument(
        "--seed",
        type=values.whole(0, values.LARGEST_SEED),
        default=0,
        metavar="N",
        help="seed of every random stream (default 0)",
    )
    bench = actions.add_parser("bench", help="diagnose every fault and twin, and score the answers")
    bench.add_argument(
        "--only", default="*", metavar="GLOB", help="only these faults, e.g. 'loss.*'"
    )
    bench.add_argument("--no-experiments", action="store_true", help="only observe and check")
    bench.add_argument(
        "--jobs",
        type=values.whole(1, values.MOST_JOBS),
        default=1,
        metavar="N",
        help="cases at a time (default 1)",
    )
    bench.add_argument(
        "--out",
        type=values.file_to_write,
        default="lab-bench.md",
        metavar="FILE",
        help="write the tables here (default: lab-bench.md)",
    )
    return p


def run(args: list[str]) -> None:
    given = parser().parse_args(args)
    act = {"list": _list, "run": _run, "bench": _bench}[given.action]
    raise SystemExit(act(given))


def _list(given: argparse.Namespace) -> int:
    chosen = _matching(given.pattern)
    width = max(len(bed.fault) for bed in chosen)
    for bed in chosen:
        print(f"{bed.fault:<{width}}  {bed.summary}")
    print(
        f"{len(chosen)} faults, each with a healthy twin. Run one: sawbones lab run "
        f"{chosen[0].fault} [--healthy]"
    )
    return 0


def _matching(pattern: str) -> list[Bed]:
    chosen = [bed for bed in beds() if fnmatch(bed.fault, pattern)]
    if not chosen:
        usage_error(
            f"no fault of the lab matches {pattern!r}. Nearest: {_nearest(pattern)}. All "
            "of them: sawbones lab list"
        )
    return chosen


def _nearest(name: str) -> str:
    known = [bed.fault for bed in beds()]
    return ", ".join(difflib.get_close_matches(name, known, n=3, cutoff=0.3) or known[:3])


def _run(given: argparse.Namespace) -> int:
    bed = next((bed for bed in beds() if bed.fault == given.fault), None)
    if bed is None:
        usage_error(
            f"no fault {given.fault!r} in the lab. Nearest: {_nearest(given.fault)}. All "
            "of them: sawbones lab list"
        )
    name = f"{bed.fault}-{'healthy' if given.healthy else 'broken'}"
    out = Path(given.out) if given.out else Path("lab-runs") / name
    out.mkdir(parents=True, exist_ok=True)
    for member in MEMBERS:
        (out / member).unlink(missing_ok=True)
    flags = [*(["--healthy"] if given.healthy else []), "--seed", str(given.seed)]
    # A fixed hash seed: a fault may lie in the order of a set, and this record of it must come out
    # the same every time.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    torchrun = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(bed.num_ranks)]
        if bed.num_ranks > 1
        else []
    )
    status = _completed(
        [sys.executable, *torchrun, str(bed.script), *flags, "--out", str(out)], environment
    )
    shown = " ".join(flags)
    layer, room = bed.fault.replace("-", "_").split(".")
    module = f"-m sawbones.faults.{layer}.{room}.lab"
    start = (
        f"torchrun --standalone --nproc-per-node {bed.num_ranks} {module}"
        if torchrun
        else f"python {module}"
    )
    command = f"PYTHONHASHSEED=0 {start} {shown} --out {name}\n"
    (out / "command.txt").write_text(command, encoding="utf-8")
    archive = out / f"{name}.tar.gz"
    archive.write_bytes(_packed(out, name))
    print(f"{archive}  sha256 {hashlib.sha256(archive.read_bytes()).hexdigest()}")
    if status:
        print(
            (
                f"sawbones: the script ended with status {status}; a fault that crashes its "
                "script is meant to"
            ),
            file=sys.stderr,
        )
    return 0


def _completed(command: list[str], environment: dict[str, str]) -> int:
    """In a session of its own: Ctrl-C is ours, and ends the script and its ranks without their
    tracebacks.
    """
    from sawbones.trials.family import end

    with ctrl_c.delayed():
        script = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        return script.wait()
    except BaseException:
        end(script, grace_seconds=5.0)
        raise


def _packed(folder: Path, name: str) -> bytes:
    """A tarball whose bytes depend on the content alone: fixed times, owners, modes and order."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for member in MEMBERS:
            file = folder / member
            if not file.exists():
                continue
            info = tarfile.TarInfo(f"{name}/{member}")
            info.size, info.mode, info.mtime = file.stat().st_size, 0o644, 0
            with file.open("rb") as content:
                tar.addfile(info, content)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as zipped:
        zipped.write(plain.getvalue())
    return packed.getvalue()


def _bench(given: argparse.Namespace) -> int:
    chosen = {bed.fault for bed in _matching(given.only)}
    out = Path(given.out)
    from rich.console import Console
    from rich.table import Table

    from sawbones.scoring.cases import lab_cases
    from sawbones.scoring.confusion import bench_markdown, confusion
    from sawbones.scoring.score import Result, score, totals

    def done(r: Result) -> None:
        if ctrl_c.came():  # the diagnosis of this case is not a whole one
            raise KeyboardInterrupt
        right = r.top1 if r.fault else not r.found
        print(
            (
                f"{'ok   ' if right else 'WRONG'} {r.case:<48} "
                f"{', '.join(r.found) or r.error or '-'}  {r.seconds:.0f} s"
            ),
            flush=True,
        )

    cases = [case for case in lab_cases() if case.name.split("/")[1] in chosen]
    results = score(cases, experiments=not given.no_experiments, done=done, jobs=given.jobs)
    table = Table("truth", "found", "cases", title="Confusion matrix")
    for (truth, found), count in sorted(confusion(results).items()):
        table.add_row(truth, found, str(count), style=None if truth == found else "bold red")
    width = shutil.get_terminal_size((100, 24)).columns
    Console(width=width).print(table)
    t = totals(results)
    print(
        f"top-1 {t['top1']:.1%}, top-3 {t['top3']:.1%}, located within 5 lines {t['located']:.1%}"
    )
    print(f"false alarms {int(t['false_alarms'])} on {int(t['healthy_cases'])} healthy scripts")
    per_case = sum(r.seconds for r in results) / len(results)
    print(f"median time {t['time_ratio_median']:.2f} x the script's own, {per_case:.1f} s per case")
    out.write_text(
        bench_markdown(
            results, "Detection over the lab", [f"`sawbones lab bench --only '{given.only}'`"]
        ),
        encoding="utf-8",
    )
    print(f"Tables: {out}")
    return 0 if all(r.top1 if r.fault else not r.found for r in results) else 1
