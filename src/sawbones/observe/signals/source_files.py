"""The user's source files, parsed: the one place where signals read them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from sawbones.observe.notebook import cell_source

_MAX_BYTES = 2 << 20


def parsed(file: str) -> tuple[ast.Module, list[str]] | None:
    """The tree and the lines of one file; None where it cannot be read or is no Python."""
    try:
        text = cell_source(file)
        if text is None:
            with open(file, encoding="utf-8", errors="replace") as source:
                text = source.read(_MAX_BYTES)
        return ast.parse(text), text.splitlines()
    except (OSError, SyntaxError, ValueError):
        return None


def parsed_files(files: Iterable[str]) -> Iterator[tuple[str, ast.Module, list[str]]]:
    for file in sorted(files):
        found = parsed(file)
        if found is not None:
            yield (file, *found)
