"""Calls what a person has written on hidden inputs, in a process of its own; one file per call, so that
what was done before a hang or a crash is kept.

    python -m sawbones.practise.writing.child FILE ASSIGNMENT SEED OUT
"""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sawbones.practise.writing.assignments import Assignment, Case, assignment


def _function(path: Path, name: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location("written", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        raise NameError(f"{path.name} has no function {name}")
    return found  # type: ignore[no-any-return]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else one == other


def _call(asked: Assignment, function: Callable[..., Any], case: Case, out: Path) -> None:
    given = copy.deepcopy(case.arguments)
    found = function(**given)
    if not isinstance(found, dict):
        raise TypeError(f"a {type(found).__name__} is given back; expected a dict")
    missing = [term for term in asked.terms if term not in found]
    if missing:
        raise KeyError(f"{', '.join(missing)} of the dict: it holds {', '.join(map(str, found))}")
    arrays = {term: np.asarray(found[term]) for term in asked.terms}
    odd = [term for term, array in arrays.items() if array.dtype.kind not in "biuf"]
    if odd:
        raise TypeError(f"{odd[0]} has dtype {arrays[odd[0]].dtype}; expected numbers")
    np.savez(out.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]
    changed = [name for name, value in case.arguments.items() if not _same(value, given[name])]
    out.with_suffix(".json").write_text(json.dumps({"changed": changed}), encoding="utf-8")


def _where(error: Exception, path: Path) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines = [error.lineno]
    return f" ({path.name}:{lines[-1]})" if lines else ""


def main(path: Path, name: str, seed: int, out: Path) -> None:
    asked = assignment(name)
    for number, case in enumerate(asked.cases(seed)):
        target = out / str(number)
        try:
            _call(asked, _function(path, asked.function), case, target)
        except Exception as error:
            said = f"{type(error).__name__}: {error}{_where(error, path)}"
            target.with_suffix(".json").write_text(json.dumps({"error": said}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
