"""A package is run as its receiver will run it, in a copy, with the data files that stay at home put beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

EXPECTED, GIVEN = "expected.csv", "rerun.csv"


@dataclass(frozen=True)
class Tried:
    said: str  # one line: what the last of its runs said
    runs: bool  # to the same numbers, or to its symptom without a seed
    expected: bytes = b""  # the numbers of the first run
    repeats: bool = True


def tried(folder: Path, at_home: Mapping[str, Path], num_ranks: int) -> Tried:
    """Runs it twice: the first run gives the numbers that the second one is compared with."""
    with tempfile.TemporaryDirectory(prefix="handed-over-") as scratch:
        copy = Path(scratch) / "package"
        shutil.copytree(folder, copy)
        for name, path in at_home.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / name)
        status, said = _rerun(copy, num_ranks)
        if status:
            return Tried(said, False)
        numbers = (copy / GIVEN).read_bytes() if (copy / GIVEN).exists() else b""
        (copy / EXPECTED).write_bytes(numbers)
        status, said = _rerun(copy, num_ranks)
        if not status:
            return Tried(said, True, numbers)
        settings = json.loads((copy / "rerun.json").read_text(encoding="utf-8"))
        (copy / "rerun.json").write_text(json.dumps(settings | {"repeats": False}))
        status, said = _rerun(copy, num_ranks)
        return Tried(said, not status, numbers, repeats=False)


def command(num_ranks: int) -> list[str]:
    return ["torchrun", f"--nproc-per-node={num_ranks}"] if num_ranks > 1 else ["python"]


def _rerun(folder: Path, num_ranks: int) -> tuple[int, str]:
    call = [sys.executable, "-B"]
    if num_ranks > 1:
        call += ["-m", "torch.distributed.run", *command(num_ranks)[1:]]
    return _last_line([*call, "rerun.py"], folder)


def _last_line(call: list[str], folder: Path) -> tuple[int, str]:
    """Exit status, and the last line that it printed; its errors where it printed nothing."""
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, env=bare)
    printed = [line for line in done.stdout.splitlines() if line.strip()]
    errors = [line for line in done.stderr.splitlines() if line.strip()]
    return done.returncode, (printed or errors or [f"exit status {done.returncode}"])[-1]


def step_alone(folder: Path, script: str) -> str:
    """The captured step in a script of its own."""
    return _last_line([sys.executable, "-B", script], folder)[1]
