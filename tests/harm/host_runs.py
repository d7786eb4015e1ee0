"""A script bare and under `sawbones run`, side by side, and what is compared of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "host"
SOURCE = Path(__file__).parents[2] / "src"
_TIMEOUT_S = 120


@dataclass(frozen=True)
class Seen:
    """What the world sees of a process."""

    status: int
    stdout: str
    stderr: str
    files: dict[str, bytes]


def case_names(script: str) -> list[str]:
    return re.findall(r"^@case\ndef (\w+)", (SCRIPTS / script).read_text(), re.MULTILINE)


def both(
    folder: Path,
    fill: Callable[[Path], object],
    args: Sequence[str],
    *,
    flags: Sequence[str] = (),
    stdin: str = "",
) -> tuple[Seen, Seen]:
    """(bare, watched): each in a folder of its own that `fill` has filled, at the same time."""
    with ThreadPoolExecutor(2) as pool:
        bare = pool.submit(_go, folder / "a" / "work", fill, [*flags, *args], stdin)
        out = ["--out", str(folder / "b" / "run")]
        command = [*flags, "-m", "sawbones", "run", "--quiet", *out, *args]
        watched = pool.submit(_go, folder / "b" / "work", fill, command, stdin)
        return bare.result(), watched.result()


def _go(work: Path, fill: Callable[[Path], object], args: Sequence[str], stdin: str) -> Seen:
    work.mkdir(parents=True)
    fill(work)
    ended = subprocess.run(
        [sys.executable, *args],
        cwd=work,
        env=environment(),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    files = {
        str(p.relative_to(work)): p.read_bytes()
        for p in sorted(work.rglob("*"))
        if p.is_file() and "__pycache__" not in p.parts
    }
    return Seen(
        ended.returncode, _plain(ended.stdout, work), _plain(_not_ours(ended.stderr), work), files
    )


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV", "SAWBONES"))}
    return {**kept, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def _plain(text: str, work: Path) -> str:
    text = text.replace(str(work.parent), "<folder>")
    text = re.sub(r"0x[0-9a-f]{6,}", "<address>", text)
    return re.sub(r"^[WE]\d{4} [\d:.]+ \d+ ", "", text, flags=re.MULTILINE)


def _not_ours(text: str) -> str:
    return "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("sawbones:")
    )


def script(name: str) -> Callable[[Path], object]:
    return lambda work: shutil.copy(SCRIPTS / name, work / name)


def written(files: dict[str, str]) -> Callable[[Path], object]:
    def fill(work: Path) -> None:
        for name, text in files.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text)

    return fill
