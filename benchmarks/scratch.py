"""What it costs to keep a script away from the user's folder: seconds and bytes, by size of folder.

    python benchmarks/scratch.py [--before SRC] [--only TEXT] [--repeats N]

Folders of 10 MB, of 1 GB and of 50,000 small files, in real bytes. Measured from the call that
makes a place for one child to the moment that a process stands in it; bytes are those on disk below
the scratch folders then. --before SRC: the same for the source tree of an earlier version, whose
scratch copies were made by `Scratch(folder).copy()`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
NOW = """
import json, os, subprocess, sys, time
from pathlib import Path
from sawbones.isolation.scratch import Scratch
kernel = sys.argv[2] == "kernel"
scratch = Scratch(Path(sys.argv[1]))
began = time.perf_counter()
room = scratch.room(kernel)
command = [sys.executable, "-c", "pass"]
if kernel:
    plan = str(room.write_plan(room.box))
    command = [sys.executable, "-m", "sawbones.isolation.enter", plan, "nothing"]
subprocess.run(command, check=True)
seconds = time.perf_counter() - began
folders = [owned.folder for owned in scratch._owned]
"""
BEFORE = """
import json, os, subprocess, sys, time
from pathlib import Path
from sawbones.experiments.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
began = time.perf_counter()
scratch.copy()
subprocess.run([sys.executable, "-c", "pass"], check=True)
seconds = time.perf_counter() - began
folders = [scratch.folder]
"""
COUNT = """
used = 0
for folder in folders:
    for here, _, names in os.walk(folder):
        used += sum(os.lstat(os.path.join(here, name)).st_blocks * 512 for name in names)
scratch.close()
print(json.dumps([seconds, used]))
"""


def files(folder: Path, count: int, size: int) -> None:
    for number in range(count):
        below = folder / f"part-{number // 1000}"
        below.mkdir(parents=True, exist_ok=True)
        (below / f"{number}.bin").write_bytes(os.urandom(size))


FOLDERS: dict[str, Callable[[Path], None]] = {
    "10 MB in 10 files": lambda folder: files(folder, 10, 1 << 20),
    "1 GB in 64 files": lambda folder: files(folder, 64, 16 << 20),
    "50,000 files of 1 kB": lambda folder: files(folder, 50_000, 1 << 10),
}


def measure(code: str, source: str, arguments: list[str], repeats: int) -> tuple[float, float]:
    """The fewest seconds of all (other work on the machine only adds), and megabytes."""
    rows = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, "-c", code + COUNT, *arguments],
            env={**os.environ, "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        rows.append(json.loads(done.stdout))
    return min(r[0] for r in rows), rows[0][1] / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="SRC", help="source tree of an earlier version")
    parser.add_argument("--only", default="", metavar="TEXT", help="folders whose name holds it")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    given = parser.parse_args()
    print("| folder | version | seconds | MB on disk |\n|---|---|---|---|")
    for name, make in FOLDERS.items():
        if given.only not in name:
            continue
        folder = Path(tempfile.mkdtemp(prefix="folder-"))
        make(folder)
        ways = [("kernel", NOW, str(SOURCE)), ("patched", NOW, str(SOURCE))]
        if given.before:
            ways.insert(0, ("before", BEFORE, given.before))
        for way, code, source in ways:
            seconds, megabytes = measure(code, source, [str(folder), way], given.repeats)
            print(f"| {name} | {way} | {seconds:.2f} | {megabytes:.1f} |", flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
