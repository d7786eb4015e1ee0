"""The script as `__main__`, in the way in which CPython itself starts it: a file, a module (`-m`),
a folder or a zip file with a `__main__.py`; and a notebook, cell by cell.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import pkgutil
import runpy
import sys
import types
from collections.abc import Callable, Sequence

from sawbones.observe import notebook


def prepare_main(script: str, argv: Sequence[str], module: str | None) -> Callable[[], None]:
    """Puts `sys` and a new `__main__` in place; what comes back runs the script."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__annotations__={}, __builtins__=builtins)
    interpreter = [sys.executable, *_interpreter_flags()]
    path = _absolute(script)
    if module is not None:
        first, run = os.getcwd(), lambda: _run_module(module, True)
        sys.argv = ["-m", *argv]
        sys.orig_argv = [*interpreter, "-m", module, *argv]
    else:
        sys.argv = [script, *argv]
        sys.orig_argv = [*interpreter, script, *argv]
        if pkgutil.get_importer(path) is not None:
            first, run = path, lambda: _run_module("__main__", False)
        else:
            run_it = _run_cells if path.endswith(notebook.SUFFIX) else _run_file
            first, run = os.path.dirname(os.path.realpath(path)), lambda: run_it(path, main)
    if not sys.flags.safe_path:
        sys.path[0:1] = [first]  # instead of the folder that we were found from
    elif module is None and first == path:
        sys.path.insert(0, first)
    _forget_shadowed(first)
    sys.modules["__main__"] = main
    return run


def runs_a_folder(script: str) -> bool:
    """A folder or a zip file that `python` would run."""
    path = _absolute(script)
    if os.path.isdir(path):
        return any(os.path.isfile(os.path.join(path, f"__main__.{end}")) for end in ("py", "pyc"))
    return os.path.isfile(path) and pkgutil.get_importer(path) is not None


def _run_module(name: str, alter_argv: bool) -> None:
    # What CPython calls for `-m` and for folders; the public run_module takes another `__main__`.
    runpy._run_module_as_main(name, alter_argv)  # type: ignore[attr-defined]


def _run_file(path: str, main: types.ModuleType) -> None:
    loader: importlib.machinery.SourceFileLoader | importlib.machinery.SourcelessFileLoader
    if path.endswith(".pyc"):
        loader = importlib.machinery.SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
        assert code is not None
    else:
        loader = importlib.machinery.SourceFileLoader("__main__", path)
        with open(path, "rb") as source:
            # dont_inherit: the __future__ flags of this file must not become the script's
            code = compile(source.read(), path, "exec", dont_inherit=True)
    main.__dict__.update(__loader__=loader, __file__=path, __cached__=None)
    exec(code, main.__dict__)


def _run_cells(path: str, main: types.ModuleType) -> None:
    notebook.run_notebook(path, main.__dict__)  # no __file__: a kernel has none either


def _absolute(script: str) -> str:
    # As CPython does it: "./" and "a/../b" stay.
    return os.path.join(os.getcwd(), script)


def _interpreter_flags() -> list[str]:
    """The flags of the interpreter itself: what stands before `-m sawbones` or our command."""
    flags: list[str] = []
    given = iter(sys.orig_argv[1:])
    for arg in given:
        if not arg.startswith("-") or arg == "-m" or arg == "--":
            break
        flags.append(arg)
        if arg in ("-W", "-X"):
            flags.append(next(given, ""))
    return flags


def _forget_shadowed(folder: str) -> None:
    """A script's own `queue.py` goes before the standard library's, unless the interpreter itself
    had loaded that before the script: modules that only we have loaded do not count.
    """
    try:
        names = {name.partition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return
    for name in names - {"sawbones"}:
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is None or spec.origin is None or spec.origin in ("frozen", "built-in"):
            continue
        if os.path.dirname(spec.origin).startswith(folder) or not _is_module(folder, name):
            continue
        for loaded in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
            del sys.modules[loaded]


def _is_module(folder: str, name: str) -> bool:
    return os.path.isfile(os.path.join(folder, f"{name}.py")) or os.path.isfile(
        os.path.join(folder, name, "__init__.py")
    )
