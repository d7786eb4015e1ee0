"""A command that is interrupted or killed at some moment, and what it leaves behind."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sawbones.isolation.family import descendants

EVERYTHING = bool(os.environ.get("SAWBONES_HARM"))

# Learns slowly and for long; writes where a script would write.
SCRIPT = """
import time
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(100_000):
    optimizer.zero_grad()
    x = torch.randn(8, 4)
    nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()
    optimizer.step()
    if step % 10 == 0:
        torch.save(model.state_dict(), "last.pt")
        with open("log.txt", "a") as log:
            log.write(f"{step}\\n")
    time.sleep(0.01)
"""


def moments(number: int, until: float, shown: int = 2) -> list[float]:
    """`number` moments from the start of the command on; in the ordinary test run, `shown` of them.

    The first comes once the interpreter is up: before that, no line of ours has been run.
    """
    spread = [0.4 + (until - 0.4) * i / (number - 1) for i in range(number)]
    if EVERYTHING:
        return spread
    return [spread[round((i + 1) * (number - 1) / (shown + 1))] for i in range(shown)]


@dataclass
class Patient:
    """A working folder of a user's, with a private folder for temporary files beside it."""

    folder: Path

    @staticmethod
    def admitted(parent: Path) -> Patient:
        home = parent / "home"
        home.mkdir()
        (parent / "tmp").mkdir()
        (home / "train.py").write_text(SCRIPT)
        (home / "best.pt").write_bytes(bytes(range(256)))
        (home / "data.csv").write_text("a,b\n1,2\n")
        return Patient(home)

    @property
    def temporary(self) -> Path:
        return self.folder.parent / "tmp"

    def state(self, *but: str) -> dict[str, str]:
        """Every file with its content; what lies below a folder named in `but` is left out."""
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.relative_to(self.folder).parts[0] not in but
        }

    def start(self, *command: str, **more: str) -> Running:
        environment = {**os.environ, "TMPDIR": str(self.temporary), "OMP_NUM_THREADS": "1", **more}
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return Running(process)


class Running:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.family: dict[int, str] = {}
        self.sent: list[float] = []  # when each signal was

    def wait_and_look(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and self.process.poll() is None:
            self.family |= descendants(self.process.pid)
            time.sleep(0.05)
        self.family |= descendants(self.process.pid)

    def send(self, number: signal.Signals) -> None:
        self.sent.append(time.monotonic())
        self.process.send_signal(number)

    def ended(self, seconds: float = 60.0) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err

    def left_alive(self) -> list[int]:
        wait_for(lambda: not alive(self.family), 15)
        return alive(self.family)


def wait_for(what: Callable[[], bool], seconds: float) -> bool:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if what():
            return True
        time.sleep(0.1)
    return False


def alive(family: dict[int, str]) -> list[int]:
    """Those still running; a zombie that nobody has fetched yet is dead."""
    running = []
    for pid, born in family.items():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[19] == born and fields[0] != "Z":
            running.append(pid)
    return running
