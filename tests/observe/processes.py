"""Scripts run as processes of their own, bare or under `sawbones run`, one thread each."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from sawbones.observe.guard import RAISE
from sawbones.schema import Event, Run
from sawbones.store import read_run

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(frozen=True)
class Outcome:
    folder: Path
    status: int
    stdout: str
    stderr: str

    @property
    def run(self) -> Run:
        return read_run(self.folder)

    def events(self, *kinds: str) -> tuple[Event, ...]:
        return self.run.of_kind(*kinds)


@dataclass(frozen=True)
class Bench:
    """Writes scripts into a folder and runs them there."""

    folder: Path

    def script(self, source: str, name: str = "train.py") -> Path:
        path = self.folder / name
        path.write_text(textwrap.dedent(source))
        return path

    def environment(self, strict: bool, **more: str) -> dict[str, str]:
        """`strict`: an error in a hook of ours ends the run instead of going quiet."""
        return {
            **os.environ,
            **ONE_THREAD,
            **({RAISE: "1"} if strict else {}),
            "PYTHONUNBUFFERED": "1",
            **more,
        }

    def command(self, script: Path, *args: str, flags: tuple[str, ...] = ("--quiet",)) -> list[str]:
        return [
            sys.executable,
            "-m",
            "sawbones",
            "run",
            "--out",
            str(self.folder / "run"),
            *flags,
            str(script),
            *args,
        ]

    def watched(
        self,
        source: str,
        *args: str,
        flags: tuple[str, ...] = ("--quiet",),
        strict: bool = True,
        **env: str,
    ) -> Outcome:
        return self._go(
            self.command(self.script(source), *args, flags=flags), self.environment(strict, **env)
        )

    def bare(self, source: str, *args: str) -> Outcome:
        return self._go([sys.executable, str(self.script(source)), *args], self.environment(False))

    def _go(self, command: list[str], environment: dict[str, str]) -> Outcome:
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=200
        )
        return Outcome(self.folder / "run", done.returncode, done.stdout, done.stderr)
