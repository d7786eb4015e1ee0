"""The terminal that a command prints its report on."""

from __future__ import annotations

from rich.console import Console


class Screen(Console):
    def on_broken_pipe(self) -> None:
        """rich would leave with status 1 here; the verdict of a report stays what it is."""
        raise BrokenPipeError
