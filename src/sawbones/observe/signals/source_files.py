"""The user's source files, parsed: the one place where signals find and read them."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import FrameType, ModuleType
from typing import Any, TypeVar

from sawbones.observe.notebook import cell_source, run_cells
from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.schema import Site

_Row = TypeVar("_Row")
_MAX_BYTES = 2 << 20
MOST_FILES = 2000


@dataclass(frozen=True)
class SourceFile:
    path: str
    tree: ast.Module
    lines: list[str]
    names: Mapping[str, Any]  # of its module, with the values that they have now

    def site(self, sites: SiteFinder, line: int, function: str = "") -> Site:
        return Site(sites.shown(self.path), line, function, self.lines[line - 1].strip()[:200])


def user_files(sites: SiteFinder, most: int = MOST_FILES) -> list[SourceFile]:
    """The files that a recording is about, the nearest first: the program itself and those whose
    lines were seen running, then what these import. Where the program is the user's own, the rest
    of its modules as well; a kernel or a test runner has loaded files of others.
    """
    main = sys.modules.get("__main__")
    program, cells = getattr(main, "__file__", None), run_cells()
    modules = {f: m for m in list(sys.modules.values()) if (f := _file_of(m)) is not None}
    is_own = bool(cells) or (program is not None and is_user_file(program))
    seen = [*sites.files(), *([] if is_own else _on_the_way())]
    near = [*cells, *(f for f in seen if is_user_file(f))]
    if program is not None and (is_own or program in seen):
        near.insert(0, program)
    found: dict[str, SourceFile] = {}
    for waiting in (near, list(modules) if is_own else []):
        while waiting and len(found) < most:
            path = waiting.pop(0)
            if path in found or (source := _read(path, modules.get(path, main))) is None:
                continue
            found[path] = source
            package = str(source.names.get("__package__") or "")
            names = _imported(source.tree, package)
            waiting += [f for n in names if (f := _file_of(sys.modules.get(n))) is not None]
    return list(found.values())


def cut_to(
    most: int, files: Sequence[SourceFile], read: Callable[[SourceFile], Iterable[_Row]]
) -> tuple[_Row, ...]:
    """What is read off the nearest files, as far as there is room, in the order of their names."""
    rows = ((file.path, row) for file in files for row in read(file))
    return tuple(row for _, row in sorted(islice(rows, most), key=lambda item: item[0]))


def _file_of(module: ModuleType | None) -> str | None:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        return None
    return file if is_user_file(file) else None


def _on_the_way() -> Iterator[str]:
    """Files that the call which got here came through."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame.f_code.co_filename
        frame = frame.f_back


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Names of the modules that a file imports, with the packages that they are in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            try:
                name = "." * node.level + (node.module or "")
                base = importlib.util.resolve_name(name, package)
            except ImportError:
                continue
            wanted = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in wanted:
            parts = name.split(".")
            yield from (".".join(parts[:end]) for end in range(len(parts), 0, -1))


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


def _read(file: str, module: ModuleType | None) -> SourceFile | None:
    found = parsed(file)
    return SourceFile(file, *found, vars(module) if module else {}) if found is not None else None
