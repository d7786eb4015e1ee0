"""The bench: starts children, waits for them, reads what they recorded, and leaves nothing behind.

Several threads may use one bench at a time. A child ends at its time limit, with its bench, on
Ctrl-C or a termination signal to this process, and by the kernel's hand when this process is
killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from sawbones.isolation import family, guarding, held_back
from sawbones.isolation.choosing import ALLOWED, choose, reason_of, refused
from sawbones.isolation.enter import REFUSED
from sawbones.isolation.scratch import Room, Scratch
from sawbones.isolation.supervising import Supervisor
from sawbones.masking.process import take_over
from sawbones.observe import ctrl_c
from sawbones.observe.cpu_time import LARGEST_STRETCH, Clock, EndAsked, own_seconds
from sawbones.observe.options import Options
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError
from sawbones.schema.one_off import HeldBack
from sawbones.store import RunNotFound, read_run
from sawbones.trials.child import Remedy, Spec

GRACE_SECONDS = 5.0
BUSY_SECONDS = 2.0  # between two looks at how long a child waits for a core


@dataclass(frozen=True)
class Patient:
    """The script under examination."""

    script: str
    argv: tuple[str, ...]
    working_folder: Path
    num_ranks: int = 1
    torchrun: bool = False  # start it under torchrun even on one rank


class ChildFailed(SawbonesError):
    """A child process left no readable run behind."""


class DiedAtOnce(ChildFailed):
    """The script itself failed before there was anything to record."""

    def __init__(self, text: str, wanted: list[HeldBack]) -> None:
        super().__init__(text)
        self.held_back = wanted


class Bench:
    def __init__(
        self,
        patient: Patient,
        seconds: float,
        allow: Sequence[str] = (),
        partial: bool = False,
    ) -> None:
        """`allow`: what is not held back, of isolation.allowing.ALLOWABLE. `partial`: Ctrl-C ends
        the children, and what was learned so far is kept; otherwise it is raised.
        """
        self.patient = patient
        self.deadline = time.monotonic() + seconds
        self._latest_end = time.monotonic() + LARGEST_STRETCH * seconds
        self.scratch = Scratch(patient.working_folder)
        try:
            self.isolation = choose(self.scratch, tuple(allow))
        except BaseException:
            self.scratch.close()
            raise
        self._children: dict[subprocess.Popen[bytes], Supervisor | None] = {}
        self._closed = False
        self._handlers: dict[signal.Signals, Any] = {}
        self._said = threading.local()
        self.baseline: Run | None = None
        self.latest: Run | None = None  # what the last re-run recorded
        # What children find in place of the user's files, by their names in the working folder.
        self.changed_files: dict[str, bytes] = {}
        self.out_of_time = False  # the latest child was ended at its time limit
        self._partial = partial
        self._collecting = ExitStack()

    def __enter__(self) -> Bench:
        # A termination signal would end this process without cleaning up; as an exception it passes
        # through __exit__.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:
                    self._handlers[number] = signal.signal(number, _leave)
        if self._partial:
            self._collecting.enter_context(ctrl_c.collected())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
        try:
            self._closed = True
            for child in list(self._children):
                self._end(child)
            self.scratch.close()
        finally:
            if in_main:
                signal.signal(signal.SIGINT, on_interrupt)
                for number, handler in self._handlers.items():
                    signal.signal(number, handler)
            self._collecting.close()

    @property
    def log_tail(self) -> str:
        """The end of what the latest child of this thread printed."""
        return str(getattr(self._said, "tail", ""))

    @property
    def reruns(self) -> list[tuple[tuple[Remedy, ...], Run]]:
        """What this thread has run again, under which remedies."""
        found: list[tuple[tuple[Remedy, ...], Run]] = self._said.__dict__.setdefault("reruns", [])
        return found

    @contextmanager
    def without_remedies(self) -> Iterator[None]:
        """What this thread runs again meanwhile is the script as it is: the placebo of a trial."""
        self._said.placebo = True
        try:
            yield
        finally:
            self._said.placebo = False

    @property
    def interrupted(self) -> bool:
        """Ctrl-C: what is known so far is wanted, nothing new is started."""
        return self._partial and ctrl_c.came()

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def room(self) -> Room:
        """A place for one child, or for several that go on from what the one before them left."""
        isolation = self.isolation
        room = self.scratch.room(isolation.is_kernel, isolation.network, isolation.files)
        for name, data in self.changed_files.items():
            room.put(name, data)
        return room

    def execute(
        self,
        options: Options,
        remedies: Sequence[Remedy] = (),
        seconds: float | None = None,
        progress: Callable[[Path], object] | None = None,
        run_folder: Path | None = None,
        patient: Patient | None = None,
        room: Room | None = None,
    ) -> Run:
        """Run the patient to its end, its step limit or its time limit, and read the recording.
        `progress` hears of the folder a few times a second, and ends the child by a true answer.

        `room`: one that an earlier child left, to go on from; without it, a fresh one.
        """
        limit = min(self.seconds_left, seconds if seconds is not None else self.seconds_left)
        if limit < 1.0:
            raise ChildFailed(
                "no time is left in the budget. Give it more: sawbones diagnose --seconds N ..."
            )
        folder = run_folder or self.scratch.run_folder()
        where = room or self.room()
        if self.interrupted:
            raise ChildFailed("interrupted before it was started")
        child, log = self._start(patient or self.patient, options, remedies, folder, limit, where)
        cut = self._wait(child, limit, folder, progress)
        self.out_of_time = cut and not self.interrupted
        if child.returncode == REFUSED and where.layers is not None:
            # Nothing was run. Rather patched than not at all.
            self.isolation = refused(self.scratch, self.isolation.allowed, reason_of(where.box))
            if room is not None:
                raise ChildFailed(f"namespaces were refused: {self.isolation.reason}")
            return self.execute(options, remedies, seconds, progress, run_folder, patient)
        if unsupervised := self._said.__dict__.pop("unsupervised", ""):
            raise ChildFailed(f"compiled code could not be supervised any more: {unsupervised}")
        take_over(where.box)
        self._said.tail = where.as_the_user_knows_it(_tail(log))
        if self._closed:
            raise ChildFailed("the diagnosis was ended")
        return self._read(folder, child.returncode, cut)

    def _wait(
        self,
        child: subprocess.Popen[bytes],
        limit: float,
        folder: Path,
        progress: Callable[[Path], object] | None,
    ) -> bool:
        """Until it has ended or its time is up; True when it had to be ended."""
        began = time.monotonic()
        clock = Clock(began, limit + GRACE_SECONDS, _Family(child.pid))
        looked, waited = began, 0.0
        end_asked = EndAsked(folder)
        try:
            while (
                child.poll() is None
                and not clock.is_over(time.monotonic())
                and not self.interrupted
            ):
                try:
                    child.wait(0.2)
                except subprocess.TimeoutExpired:
                    if time.monotonic() - looked > BUSY_SECONDS:
                        looked, before = time.monotonic(), waited
                        own = own_seconds(looked - began, clock.processes)
                        waited = max(waited, looked - began - own)
                        # the budget counts seconds of a machine with cores to spare
                        self.deadline = min(self.deadline + waited - before, self._latest_end)
                    if progress is not None and progress(folder):
                        # after its step, with all that it knows; a signal would end it anywhere
                        end_asked.ask()
                        progress = None
                        clock = Clock(time.monotonic(), GRACE_SECONDS, clock.processes)
            return child.poll() is None
        finally:
            self._end(child)
            end_asked.forget()

    def _read(self, folder: Path, status: int, cut: bool) -> Run:
        wanted = held_back.read(folder)
        try:
            run = read_run(folder)
        except RunNotFound as error:
            if status:
                text = f"the script died before it imported torch (exit status {status})"
                raise DiedAtOnce(text, wanted) from error
            raise ChildFailed(
                f"{self.patient.script} ended without importing torch: there is no "
                f"training to look at. It said:\n{self.log_tail}"
            ) from error
        wanted = held_back.with_last_words(wanted, run.ending, self.isolation.mode)
        died = run.ending.kind == "killed" and not cut and bool(status)
        environment = {**run.environment, "isolation": self.isolation.mode}
        return replace(
            run, died=status if died else 0, held_back=tuple(wanted), environment=environment
        )

    def rerun(
        self, remedies: Sequence[Remedy] = (), max_steps: int | None = None, **options: Any
    ) -> Run:
        """The same script from the same seed under remedies, as far as the symptom needs.

        Options are those of the observer, and `patient` and `room` of execute.
        """
        if self.interrupted:
            raise ChildFailed("interrupted before it was done")
        where = {
            name: options.pop(name) for name in ("patient", "room", "seconds") if name in options
        }
        plain = Options(
            deep_steps=(), deep_every=0, max_steps=max_steps, full_every=10, batch_samples=0
        )
        if getattr(self._said, "placebo", False):
            remedies = ()
        run = self.latest = self.execute(replace(plain, **options), remedies, **where)
        self.reruns.append((tuple(remedies), run))
        if self.interrupted:
            raise ChildFailed("interrupted before it was done")
        return run

    def _start(
        self,
        patient: Patient,
        options: Options,
        remedies: Sequence[Remedy],
        folder: Path,
        limit: float,
        room: Room,
    ) -> tuple[subprocess.Popen[bytes], Path]:
        script = self._script_in(patient)
        options = replace(options, max_seconds=min(limit, options.max_seconds or limit))
        folder.mkdir(parents=True, exist_ok=True)
        spec = Spec(
            script,
            patient.argv,
            str(folder),
            str(room.working_folder),
            options,
            guarding.plain(room, folder, self.isolation),
            tuple(remedies),
            patient.num_ranks,
            patient.torchrun,
            os.getpid(),
        )
        spec_file = room.box / "spec.json"
        spec_file.write_text(spec.to_json(), encoding="utf-8")
        return self._launch(["sawbones.trials.child", str(spec_file)], room, folder)

    def run_module(self, arguments: Sequence[str], room: Room, seconds: float) -> int | None:
        """`python -m ARGUMENTS` in a room: its exit status, None where it had to be ended. What it
        printed is `log_tail`. It runs the script on a bench of its own, which supervises it: two
        supervisors for one process are refused.
        """
        child, log = self._launch(arguments, room, room.box, supervised=False)
        cut = self._wait(child, min(seconds, self.seconds_left), room.box, None)
        self._said.tail = room.as_the_user_knows_it(_tail(log))
        return None if cut or self.interrupted else child.returncode

    def _launch(
        self, arguments: Sequence[str], room: Room, folder: Path, supervised: bool = True
    ) -> tuple[subprocess.Popen[bytes], Path]:
        """`folder`: what the child shares with us beside its room."""
        command = list(arguments)
        supervisor = None
        if room.layers is not None:
            command = ["sawbones.isolation.enter", str(room.write_plan(folder)), *command]
        elif supervised and (supervisor := guarding.supervisor(room, folder, self.isolation)):
            command = supervisor.command(command)
        temporary = room.box / "tmp"
        environment = {
            **os.environ,
            "TMPDIR": str(temporary),
            "WANDB_MODE": "disabled",
            "PYTHONDONTWRITEBYTECODE": "1",
            # native code loads from it: it has to be where it says
            "TRITON_CACHE_DIR": str(temporary / "triton"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
            "TORCHDYNAMO_DISABLE": "1",
            "TORCH_COMPILE_DISABLE": "1",  # the same mathematics in eager mode, which can be traced
        }
        if "native" in self.isolation.allowed:
            environment[ALLOWED] = ",".join(self.isolation.allowed)
        log = room.box / "output.log"
        with log.open("wb") as output, ctrl_c.delayed():
            child = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=room.working_folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=supervisor.kept_open if supervisor else (),
            )
            self._children[child] = supervisor
            if supervisor:
                supervisor.start(child.pid)
        return child, log

    def _script_in(self, patient: Patient) -> str:
        absolute = (patient.working_folder / patient.script).resolve()
        try:
            return str(absolute.relative_to(self.scratch.source))
        except ValueError:
            return str(
                absolute
            )  # the script lies outside of the working folder: run it where it is

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        family.end(child, GRACE_SECONDS)
        supervisor = self._children.pop(child, None)
        if supervisor:
            supervisor.close()
            self._said.unsupervised = supervisor.failure


class _Family:
    """The numbers of a process and of what it has started by now."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def __iter__(self) -> Iterator[int]:
        return iter((self.pid, *family.descendants(self.pid)))


def _leave(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


def _tail(log: Path, size: int = 20000) -> str:
    try:
        return log.read_bytes()[-size:].decode("utf-8", "replace")
    except OSError:
        return ""
