"""Printing: every text that came from a file or from the user's program goes through `say`."""

from __future__ import annotations

import sys
from pathlib import Path

from sawbones.masking import shown


def say(text: str, end: str = "\n", error: bool = False) -> None:
    print(shown(text), end=end, file=sys.stderr if error else sys.stdout, flush=error)


def wrote(path: str | Path) -> None:
    """`wrote report.html (212 kB)`, on standard error: the report itself may go through a pipe."""
    size = Path(path).stat().st_size
    told = f"{size} bytes" if size < 1000 else f"{size / 1000:.0f} kB"
    told = f"{size / 1e6:.1f} MB" if size >= 1e6 else told
    say(f"sawbones: wrote {path} ({told})", error=True)
