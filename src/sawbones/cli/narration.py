"""What a long command says while it works: a line that changes on a terminal, lines elsewhere."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sawbones.cli.printing import say

if TYPE_CHECKING:
    from sawbones.schema import Finding

READING_SAID_S = 5.0  # between two lines, where there is no terminal


@dataclass(frozen=True)
class Narration:
    say: Callable[[str], None]
    progress: Callable[[Path], None] | None = None
    found: Callable[[Finding], None] = lambda finding: None


@contextmanager
def narration(quiet: bool, seconds: float) -> Iterator[Narration]:
    from rich.console import Console
    from rich.markup import escape

    from sawbones.isolation.choosing import ISOLATION
    from sawbones.masking import shown_line

    console = Console(stderr=True)
    began = time.monotonic()

    def proven(finding: Finding) -> str:
        where = f" {finding.where[0]}" if finding.where else ""
        after = f"proven after {time.monotonic() - began:.0f} s"
        return shown_line(f"{after}: {finding.fault}{where}: {finding.title}")

    if quiet or not console.is_terminal:

        def said(text: str) -> None:
            if not quiet or text.startswith(ISOLATION):
                say(f"sawbones: {text}", error=True)

        yield Narration(said, found=lambda finding: said(proven(finding)))
        return
    with console.status("observing") as status:
        doing, phase = ["observing"], [began]

        def clock() -> str:
            now = time.monotonic()
            left = max(0.0, seconds - (now - began))
            return (
                f"({now - phase[0]:.0f} s; {now - began:.0f} s in all, at most {left:.0f} s "
                "left; Ctrl-C: diagnosis so far)"
            )

        def tell(text: str) -> None:
            if text.startswith(ISOLATION):  # the first line of every diagnosis
                console.print(shown_line(text), highlight=False, markup=False)
                return
            doing[0] = escape(shown_line(text))
            phase[0] = time.monotonic()
            status.update(f"{doing[0]}  {clock()}")

        def progress(folder: Path) -> None:
            steps, loss = _position(folder)
            at = f" step {steps}, loss {loss}" if steps else ""
            status.update(f"{doing[0]}{at}  {clock()}")

        def found(finding: Finding) -> None:
            console.print(proven(finding), highlight=False, markup=False, style="red")

        yield Narration(tell, progress, found)


@contextmanager
def reading(quiet: bool) -> Iterator[Callable[[str], None]]:
    """How far a file is read: nothing is said of one that is short."""
    from rich.console import Console
    from rich.markup import escape

    from sawbones.masking import shown_line

    console = Console(stderr=True)
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if not quiet and now - last >= READING_SAID_S:
            last = now
            say(f"sawbones: reading: {shown_line(text)}", error=True)

    if quiet or not console.is_terminal:
        yield tell
        return
    with console.status("reading") as status:
        yield lambda text: status.update(f"reading: {escape(shown_line(text))}")


def _position(folder: Path) -> tuple[int, str]:
    from sawbones.store.opening import read_only

    try:
        db = sqlite3.connect(read_only(folder / "run.db"), uri=True, timeout=0.1)
        row = db.execute(
            "SELECT count(*), (SELECT loss FROM raw_steps ORDER BY row DESC LIMIT 1) FROM raw_steps"
        ).fetchone()
        db.close()
    except sqlite3.Error:
        return 0, ""
    try:
        return int(row[0]), f"{float(row[1]):.4g}"
    except (TypeError, ValueError):
        return int(row[0]), str(row[1])
