"""What a long command says while it works: a line that changes on a terminal, lines elsewhere."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sawbones.cli.printing import say


@dataclass(frozen=True)
class Narration:
    say: Callable[[str], None]
    progress: Callable[[Path], None] | None = None


@contextmanager
def narration(quiet: bool, seconds: float) -> Iterator[Narration]:
    from rich.console import Console
    from rich.markup import escape

    from sawbones.isolation.choosing import ISOLATION
    from sawbones.masking import shown_line

    console = Console(stderr=True)
    if quiet or not console.is_terminal:

        def said(text: str) -> None:
            if not quiet or text.startswith(ISOLATION):
                say(f"sawbones: {text}", error=True)

        yield Narration(said)
        return
    began = time.monotonic()
    with console.status("observing") as status:
        doing = ["observing"]

        def tell(text: str) -> None:
            if text.startswith(ISOLATION):  # the first line of every diagnosis
                console.print(shown_line(text), highlight=False, markup=False)
                return
            doing[0] = escape(shown_line(text))
            status.update(f"{doing[0]}  ({time.monotonic() - began:.0f} s of {seconds:.0f})")

        def progress(folder: Path) -> None:
            steps, loss = _position(folder)
            at = f" step {steps}, loss {loss}" if steps else ""
            status.update(
                f"{doing[0]}{at}  ({time.monotonic() - began:.0f} s of "
                f"{seconds:.0f}; Ctrl-C: diagnosis so far)"
            )

        yield Narration(tell, progress)


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
