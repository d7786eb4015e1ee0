"""While a library is imported, lines are not followed: nothing in there is the script's own, and
`import torch` alone calls a million Python functions.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Callable
from typing import Any

from sawbones.observe.sites import is_user_file

Find = Callable[[str, Any, Any], importlib.machinery.ModuleSpec | None]


class UnwatchedImports:
    """A finder that finds nothing itself: what the others find is run without the trace function
    where it is a library's file. Modules of the script stay as they are.
    """

    def __init__(self, trace: Callable[..., Any]) -> None:
        self._trace = trace
        self._searching = False

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if self._searching or sys.gettrace() != self._trace:
            return None
        self._searching = True
        try:
            spec = self._found_by_others(name, path, target)
        finally:
            self._searching = False
        if spec is not None and _is_library(spec):
            self._run_unwatched(spec.loader)
        return spec

    def _found_by_others(
        self, name: str, path: Any, target: Any
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in list(sys.meta_path):
            find: Find | None = getattr(finder, "find_spec", None)
            if find is not None and finder is not self:
                spec = find(name, path, target)
                if spec is not None:
                    return spec
        return None

    def _run_unwatched(self, loader: Any) -> None:
        run = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            if loader.__dict__.get("exec_module") is exec_module:
                del loader.exec_module  # once: what is loaded again is not our concern
            watched = sys.gettrace() == self._trace
            if watched:
                sys.settrace(None)
            try:
                run(module)
            finally:
                if watched and sys.gettrace() is None and self in sys.meta_path:
                    sys.settrace(self._trace)

        loader.exec_module = exec_module


def _is_library(spec: importlib.machinery.ModuleSpec) -> bool:
    is_source = isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    return is_source and spec.origin is not None and not is_user_file(spec.origin)
