"""A patch as people make it -> the changed script: a unified diff with its hunks where their lines
are found, or the whole mended file.
"""

from __future__ import annotations

import re

from sawbones.fixing.source import NotReadable, Source
from sawbones.schema.errors import SawbonesError

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


class DoesNotApply(SawbonesError):
    """A patch whose lines are not those of the script."""


def patched(source: Source, patch: str) -> Source:
    text = patch if not _is_diff(patch) else _applied(source.text, patch)
    try:
        return Source.of(text.encode(), source.file)
    except NotReadable as error:
        raise DoesNotApply(str(error)) from error


def _is_diff(patch: str) -> bool:
    return any(_HUNK.match(line) for line in patch.splitlines())


def _applied(text: str, patch: str) -> str:
    lines = text.splitlines()
    shift = 0
    for start, old, new in _hunks(patch):
        at = _found(lines, old, start - 1 + shift)
        if at is None:
            shown = next((line for line in old if line.strip()), "").strip()
            raise DoesNotApply(f"the hunk at line {start} does not fit: {shown!r} is not there")
        lines[at : at + len(old)] = new
        shift += len(new) - len(old)
    return "\n".join(lines) + "\n"


def _hunks(patch: str) -> list[tuple[int, list[str], list[str]]]:
    found: list[tuple[int, list[str], list[str]]] = []
    for line in patch.splitlines():
        start = _HUNK.match(line)
        if start is not None:
            found.append((int(start[1]), [], []))
        elif found and not line.startswith(("\\", "--- ", "+++ ", "diff ")):
            _, old, new = found[-1]
            if not line.startswith("+"):
                old.append(line[1:])
            if not line.startswith("-"):
                new.append(line[1:])
    return found


def _found(lines: list[str], wanted: list[str], near: int) -> int | None:
    """Where these lines stand, nearest to where the patch says."""
    places = [
        at for at in range(len(lines) - len(wanted) + 1) if lines[at : at + len(wanted)] == wanted
    ]
    return min(places, key=lambda at: abs(at - near), default=None)
