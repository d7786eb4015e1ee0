"""Virtual fixes: one file each with install(recorder, **params). They act in the child process
only.
"""

from __future__ import annotations

from typing import Any


def took_hold(recorder: Any, remedy: str) -> None:
    """Once more, for the run to say: a remedy that never met what it changes shows nothing."""
    counts = recorder.facts.setdefault("remedies", {})
    counts[remedy] = counts.get(remedy, 0) + 1
