"""The bench: starts children, waits for them, reads what they recorded, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from sawbones.experiments.child import Remedy, Spec
from sawbones.experiments.scratch import Scratch
from sawbones.observe.options import Options
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError
from sawbones.store import RunNotFound, read_run

GRACE_SECONDS = 5.0


@dataclass(frozen=True)
class Patient:
    """The script under examination."""

    script: str
    argv: tuple[str, ...]
    working_folder: Path
    num_ranks: int = 1


class ChildFailed(SawbonesError):
    """A child process left no readable run behind."""


class Bench:
    def __init__(self, patient: Patient, seconds: float) -> None:
        self.patient = patient
        self.deadline = time.monotonic() + seconds
        self.scratch = Scratch(patient.working_folder)
        self._children: dict[subprocess.Popen[bytes], Path] = {}
        self.log_tail = ""
        self.baseline: Run | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for child in list(self._children):
            self._end(child)
        self.scratch.close()

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def execute(
        self,
        options: Options,
        remedies: Sequence[Remedy] = (),
        seconds: float | None = None,
        progress: Callable[[Path], None] | None = None,
        run_folder: Path | None = None,
    ) -> Run:
        """Run the patient to its end, its step limit or its time limit, and read the recording."""
        limit = min(self.seconds_left, seconds if seconds is not None else self.seconds_left)
        if limit < 1.0:
            raise ChildFailed("no time is left in the budget. Give it more: sawbones diagnose --seconds N ...")
        folder = run_folder or self.scratch.run_folder()
        child, log = self._start(options, remedies, folder, limit)
        interrupted = False
        ends = time.monotonic() + limit + GRACE_SECONDS
        try:
            while child.poll() is None and time.monotonic() < ends:
                try:
                    child.wait(0.2)
                except subprocess.TimeoutExpired:
                    if progress is not None:
                        progress(folder)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._end(child)
        self.log_tail = _tail(log)
        try:
            run = read_run(folder)
        except RunNotFound as error:
            raise ChildFailed(
                f"the script recorded nothing (it never imported torch, or died at once). It said:\n{self.log_tail}"
            ) from error
        return replace(run, facts={**run.facts, "interrupted": True}) if interrupted else run

    def rerun(self, remedies: Sequence[Remedy] = (), max_steps: int | None = None, **options: Any) -> Run:
        """The same script from the same seed under remedies, as far as the symptom needs."""
        plain = Options(deep_steps=(), deep_every=0, max_steps=max_steps, full_every=10, batch_samples=0)
        return self.execute(replace(plain, **options), remedies)

    def _start(
        self, options: Options, remedies: Sequence[Remedy], folder: Path, limit: float
    ) -> tuple[subprocess.Popen[bytes], Path]:
        working = self.scratch.copy()
        script = self._script_in(working)
        options = replace(options, max_seconds=min(limit, options.max_seconds or limit))
        spec = Spec(script, self.patient.argv, str(folder), str(working), options, tuple(remedies))
        spec_file = working.parent / "spec.json"
        spec_file.write_text(spec.to_json(), encoding="utf-8")
        temporary = working.parent / "tmp"
        temporary.mkdir()
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ, "TMPDIR": str(temporary), "WANDB_MODE": "disabled", "PYTHONDONTWRITEBYTECODE": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false",
            "TORCHDYNAMO_DISABLE": "1", "TORCH_COMPILE_DISABLE": "1",  # the same mathematics in eager mode, which can be traced
        }  # fmt: skip
        start = [sys.executable, "-m"]
        if self.patient.num_ranks > 1:
            start += ["torch.distributed.run", "--standalone", "--nproc-per-node", str(self.patient.num_ranks), "-m"]
        log = working.parent / "output.log"
        with log.open("wb") as output:
            child = subprocess.Popen(
                [*start, "sawbones.experiments.child", str(spec_file)],
                cwd=working, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        self._children[child] = working
        return child, log

    def _script_in(self, working: Path) -> str:
        absolute = (self.patient.working_folder / self.patient.script).resolve()
        try:
            return str(absolute.relative_to(self.scratch.source))
        except ValueError:
            return str(absolute)  # the script lies outside of the working folder: run it where it is

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """The child and everything it started: asked first, then killed."""
        self._children.pop(child, None)
        if child.poll() is None:
            _signal_group(child, signal.SIGTERM)
            try:
                child.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        _signal_group(child, signal.SIGKILL)
        child.wait()


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _tail(log: Path, size: int = 4000) -> str:
    try:
        return log.read_bytes()[-size:].decode("utf-8", "replace")
    except OSError:
        return ""
