"""While a library is imported the script's lines are not followed; its own modules still are."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from sawbones.observe.sources.imports import UnwatchedImports

LIBRARY = "colorsys"  # small, of the standard library, and nobody else's


class Watched:
    def __init__(self) -> None:
        self.modules: list[str] = []

    def trace(self, frame: FrameType, event: str, arg: Any) -> None:
        if frame.f_code.co_name == "<module>":
            self.modules.append(Path(frame.f_code.co_filename).stem)


@pytest.fixture
def watched() -> Iterator[Watched]:
    before, seen = sys.gettrace(), Watched()
    trace = seen.trace
    imports = UnwatchedImports(trace)
    sys.modules.pop(LIBRARY, None)
    imports.install()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)
        imports.remove()
        assert imports not in sys.meta_path


def test_a_library_is_not_followed_and_lines_are_again_after_it(watched: Watched) -> None:
    trace = sys.gettrace()
    module = importlib.import_module(LIBRARY)
    assert module.rgb_to_hsv(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert LIBRARY not in watched.modules
    assert sys.gettrace() == trace
    assert "exec_module" not in vars(module.__spec__.loader)


def test_a_module_of_the_script_is_followed(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows_of_mine.py").write_text(f"import {LIBRARY}\nrows = [1, 2]\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.import_module("rows_of_mine").rows == [1, 2]
    sys.modules.pop("rows_of_mine")
    assert watched.modules == ["rows_of_mine"]


def test_a_module_that_is_not_there_is_still_missing(watched: Watched) -> None:
    trace = sys.gettrace()
    with pytest.raises(ModuleNotFoundError, match="no_such_library_here"):
        importlib.import_module("no_such_library_here")
    assert sys.gettrace() == trace
