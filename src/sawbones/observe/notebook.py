"""Notebooks: the cells of an .ipynb file run as a script, and the names of a kernel's cells.

A cell is a place of its own: `train.ipynb[3]:4` is line 4 of the third cell, counted as Jupyter
numbers them when all are run from the top (code cells that are not empty, from 1). In a running
kernel it is `In[3]:4`, the number that stands beside the cell.
"""

from __future__ import annotations

import ast
import builtins
import json
import linecache
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sawbones.schema.errors import SawbonesError

SUFFIX = ".ipynb"
_CELL = re.compile(r"^(?P<notebook>.*\.ipynb)\[(?P<number>\d+)\]$")
# Magics that run the code given to them; what others do, Python cannot.
_RUNS = ("time", "timeit", "prun", "capture", "sawbones")
_LINE_MAGIC = re.compile(rf"%(?:{'|'.join(_RUNS)})(?:\s+-\S+)*\s+(?P<code>.+)")
_FOR_IPYTHON = re.compile(r"^\s*(?:[%!?]|[\w.\[\]]+\?\??\s*$|[\w, ]+=\s*[%!])")


class NotANotebook(SawbonesError):
    """The file is no notebook of the format that Jupyter writes today."""


@dataclass(frozen=True, slots=True)
class Cell:
    number: int
    source: str  # Python; what only IPython understands is left out, the lines stay where they are
    left_out: tuple[str, ...] = ()


def read_notebook(path: str | os.PathLike[str]) -> list[Cell]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        cells = [c for c in document["cells"] if c["cell_type"] == "code"]
        texts = ["".join(c["source"]) for c in cells]  # a text, or a list of its lines
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise NotANotebook(
            f"{path} is no notebook of format 4 ({type(error).__name__}: {error}). Save it again "
            "with Jupyter, or export it: jupyter nbconvert --to script"
        ) from None
    written = [text for text in texts if text.strip()]
    return [as_python(number, text) for number, text in enumerate(written, start=1)]


def as_python(number: int, text: str) -> Cell:
    lines = text.replace("\r\n", "\n").split("\n")
    left_out: list[str] = []
    first = next(i for i, line in enumerate(lines) if line.strip())
    if lines[first].startswith("%%"):
        runs = lines[first][2:].split(maxsplit=1)[:1]
        if not runs or runs[0] not in _RUNS:
            return Cell(number, "\n".join(f"# {line}" for line in lines), (lines[first],))
        lines[first] = f"# {lines[first]}"
    for _ in range(len(lines)):  # each round takes out one line that Python refuses
        at = _refused(lines)
        if at is None or not _FOR_IPYTHON.match(lines[at]):
            break
        left_out += _take_out(lines, at)
    return Cell(number, "\n".join(lines), tuple(left_out))


def _refused(lines: list[str]) -> int | None:
    try:
        ast.parse("\n".join(lines))
    except SyntaxError as error:
        return min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    except ValueError:  # null bytes: for the run to say
        pass
    return None


def _take_out(lines: list[str], at: int) -> list[str]:
    line = lines[at]
    indent = line[: len(line) - len(line.lstrip())]
    timed = _LINE_MAGIC.fullmatch(line.strip())
    if timed is not None:
        lines[at] = indent + timed["code"]
        return []
    command = line.strip().rstrip("\\").rstrip()
    lines[at] = f"{indent}pass  # {command}"
    while line.endswith("\\") and at + 1 < len(lines):  # a command that goes on below
        at += 1
        line, lines[at] = lines[at], f"{indent}# {lines[at].strip()}".rstrip("\\").rstrip()
    return [command]


def run_notebook(path: str, namespace: dict[str, Any]) -> None:
    """All cells from the top in one namespace, as `Restart and run all` does."""
    vars(builtins).setdefault("display", _display)
    for cell in read_notebook(path):
        name = f"{path}[{cell.number}]"
        lines = [f"{line}\n" for line in cell.source.split("\n")]
        linecache.cache[name] = (len(cell.source), None, lines, name)
        exec(compile(cell.source, name, "exec", dont_inherit=True), namespace)


def _display(*things: Any, **settings: Any) -> None:
    for thing in things:
        print(repr(thing))


def run_cells() -> list[str]:
    """Names of the cells that this process has run from a notebook file."""
    return [name for name in linecache.cache if _CELL.match(name)]


def cell_source(name: str) -> str | None:
    """The Python of a cell by its place, `train.ipynb[3]`; None where that is no such place."""
    found = _CELL.match(name)
    if found is None:
        return None
    if name in linecache.cache:
        return "".join(linecache.getlines(name))
    try:
        cells = read_notebook(found["notebook"])
        return cells[int(found["number"]) - 1].source
    except (SawbonesError, IndexError):
        return None


def kernel_cell(filename: str) -> str | None:
    """`In[3]` for the file name that IPython gave to a cell; None for all others."""
    shell = kernel()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = named(filename) if named is not None else None
    return str(found[1]) if found else None


def kernel() -> Any:
    """IPython's shell where this process is a kernel or a session of it; else None."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def notebook_name() -> str:
    """What the front end says it is called; "notebook" where it does not."""
    shell = kernel()
    told = os.environ.get("JPY_SESSION_NAME") or ""
    if shell is not None:
        told = str(shell.user_ns.get("__vsc_ipynb_file__") or told)
    return os.path.basename(told) or "notebook"
