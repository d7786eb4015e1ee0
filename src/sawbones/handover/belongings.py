"""What of a user's files a script needs to run elsewhere: the modules beside it, and the data files that it
names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

LONGEST_NAME = 200


def imported(path: Path) -> set[str]:
    """The first part of every module that a file imports from elsewhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def modules_beside(script: Path) -> set[Path]:
    """Modules next to the script that it imports, packages with all of their files, and what those
    import.
    """
    found: set[Path] = set()
    todo = [script]
    while todo:
        for name in imported(todo.pop()):
            alone, folder = script.parent / f"{name}.py", script.parent / name
            several = set(folder.rglob("*.py")) if folder.is_dir() else set()
            new = ({alone} if alone.is_file() else several) - found - {script}
            found |= new
            todo += new
    return found


def files_named(
    sources: Iterable[Path], arguments: Iterable[str], roots: Iterable[Path]
) -> dict[str, Path]:
    """Files that stand as text in the sources or the arguments and were there before the run: data and
    weights. By the name under which the script finds them from its folder or from the one it was
    started in; one outside of both by its whole path.
    """
    sources = set(sources)
    written: set[str] = set()
    named = {part for text in arguments for part in (text, text.rpartition("=")[2])}
    for path in sources:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call):
                written |= _written(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.add(node.value)
    usable = sorted(t for t in named - written if t and len(t) < LONGEST_NAME and "\0" not in t)
    found: dict[str, Path] = {}
    for root in roots:
        folders = [text for text in usable if _is_below(root / text, root)]
        # Path("data") / "rows.csv", os.path.join("data", "rows.csv")
        joined = [str(Path(folder) / text) for folder in folders for text in usable]
        for text in [*usable, *joined]:
            path = Path(text).expanduser() if text.startswith("~") else root / text
            if path.is_file() and path not in sources:
                inside = path.resolve().is_relative_to(root.resolve())
                name = path.resolve().relative_to(root.resolve()) if inside else path.resolve()
                found.setdefault(name.as_posix(), path)
    return found


def _written(call: ast.Call) -> set[str]:
    texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if function in ("save", "savez", "to_csv") or "w" in texts[1:]:
        return {text for text in texts if isinstance(text, str)}
    return set()


def _is_below(path: Path, root: Path) -> bool:
    return path.is_dir() and path.resolve() != root.resolve()
