"""Printing: every text that came from a file or from the user's program goes through `say`."""

from __future__ import annotations

import sys

from sawbones.masking import shown


def say(text: str, end: str = "\n", error: bool = False) -> None:
    print(shown(text), end=end, file=sys.stderr if error else sys.stdout, flush=error)
