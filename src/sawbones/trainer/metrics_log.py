"""What a run says: one JSON line per step and evaluation on disk; a bar on a terminal, plain lines
elsewhere.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Any, Protocol

import torch

from .checkpoint import write_atomically

PLAIN_LINES = 20  # how many progress lines a piped run prints


class MetricsLog:
    """Appends to log.jsonl. Lines after the step a run resumes from belong to a future that is run
    again: dropped.
    """

    def __init__(self, path: Path, resumed_step: int | None) -> None:
        if resumed_step is None:
            path.unlink(missing_ok=True)
        elif path.exists():
            write_atomically(path, b"".join(_lines_up_to(path, resumed_step)))
        self._file: IO[str] = path.open("a", encoding="utf-8")

    def write(self, record: dict[str, Any]) -> None:
        # NaN is no JSON: a diverging run must still leave a log that every reader can parse.
        finite = {
            k: str(v) if isinstance(v, float) and not _is_finite(v) else v
            for k, v in record.items()
        }
        self._file.write(json.dumps(finite, allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _is_finite(value: float) -> bool:
    return value - value == 0.0


def _lines_up_to(path: Path, step: int) -> list[bytes]:
    kept = []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            if line.endswith(b"\n") and json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue  # a line cut off by a crash
    return kept


def memory_mib(device: torch.device) -> float:
    """Peak memory: of the device allocator on CUDA, of the process elsewhere."""
    if device.type == "cuda":
        return round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
    try:
        import resource
    except ImportError:  # Windows has no such call
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


class Progress(Protocol):
    def step(self, step: int, record: dict[str, Any]) -> None: ...
    def say(self, line: str) -> None: ...
    def close(self) -> None: ...


class SilentProgress:
    """For ranks other than 0, and for callers that print by themselves."""

    def step(self, step: int, record: dict[str, Any]) -> None:
        pass

    def say(self, line: str) -> None:
        pass

    def close(self) -> None:
        pass


class PlainProgress(SilentProgress):
    def __init__(self, total: int) -> None:
        self.total = total
        self.every = max(1, total // PLAIN_LINES)

    def step(self, step: int, record: dict[str, Any]) -> None:
        if step % self.every == 0 or step == self.total:
            rate = f"{record['tokens_per_s']:.0f} tokens/s"
            self.say(
                f"step {step}/{self.total}  loss {record['loss']:.4f}  lr "
                f"{record['lr']:.2e}  {rate}"
            )

    def say(self, line: str) -> None:
        print(line, flush=True)


class BarProgress:
    def __init__(self, total: int, done: int) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns)
        self.task = self.bar.add_task("training", total=total, completed=done)
        self.bar.start()

    def step(self, step: int, record: dict[str, Any]) -> None:
        text = f"loss {record['loss']:.4f}  {record['tokens_per_s']:.0f} tokens/s"
        self.bar.update(self.task, completed=step, description=text)

    def say(self, line: str) -> None:
        self.bar.console.print(line, highlight=False, markup=False)

    def close(self) -> None:
        self.bar.stop()


def pick_progress(total: int, done: int, is_main: bool, quiet: bool = False) -> Progress:
    if not is_main or quiet:
        return SilentProgress()
    return BarProgress(total, done) if sys.stdout.isatty() else PlainProgress(total)
