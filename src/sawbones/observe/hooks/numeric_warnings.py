"""Warnings that Python shows for the user's own lines, among them NumPy's on divisions by zero and
invalid values.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from sawbones.observe.patches import Patches
from sawbones.observe.sites import is_user_file
from sawbones.schema import Site

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

MAX_WARNINGS = 50


def install(recorder: Recorder, patches: Patches) -> None:
    seen: set[tuple[str, int]] = set()

    def make(original: Any) -> Any:
        def showwarning(
            message: Any,
            category: Any,
            filename: str,
            lineno: int,
            file: Any = None,
            line: Any = None,
        ) -> None:
            original(message, category, filename, lineno, file, line)
            if (
                recorder.is_host()
                and len(seen) < MAX_WARNINGS
                and (filename, lineno) not in seen
                and is_user_file(filename)
            ):
                seen.add((filename, lineno))
                recorder.guard("warnings", note, str(message), category, filename, lineno)

        return showwarning

    def note(text: str, category: Any, filename: str, lineno: int) -> None:
        site = Site(recorder.sites.shown(filename), lineno)
        recorder.event(
            "warning", {"text": text[:300], "category": getattr(category, "__name__", "")}, site
        )

    patches.replace(warnings, "showwarning", make)
