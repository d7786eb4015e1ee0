"""What the commands take: flags with their limits, the user's script, and what stands behind it."""

from __future__ import annotations

import argparse
import os
import re
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NoReturn

from sawbones.cli import values
from sawbones.cli.guard import usage_error
from sawbones.cli.printing import say
from sawbones.cli.trailing import take_back

__all__ = [
    "Parser",
    "existing_script",
    "is_run_folder",
    "module_file",
    "readable_source",
    "split_script",
    "usage_error",
]


class Parser(argparse.ArgumentParser):
    """Flags in full, and one line for a mistake."""

    def __init__(self, prog: str, description: str = "", **settings: object) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(prog, description=description, allow_abbrev=False, **settings)  # type: ignore[arg-type]
        # argparse takes -inf and -1e5 for flags, and would say that a value is missing
        self._negative_number_matcher = re.compile(r"^-(\d|\.\d|inf|nan)")

    # flags of several commands

    def add_json(self) -> None:
        told = "write the report as JSON (- for standard output)"
        self.add_argument("--json", type=values.file_to_write, metavar="FILE", help=told)

    def add_html(self) -> None:
        told = "write a self-contained HTML report"
        self.add_argument("--html", type=values.file_to_write, metavar="FILE", help=told)

    def add_only(self) -> None:
        told = "only these faults, e.g. 'loss.*'"
        self.add_argument("--only", type=values.fault_glob, default="*", metavar="GLOB", help=told)

    def add_bundle(self) -> None:
        told = "run the code of a bundle that you did not make"
        self.add_argument("--trust", action="store_true", help=told)
        told = ".sawbones/<run>/bundles/step-000123.sawbones"
        self.add_argument("bundle", metavar="BUNDLE", help=told)

    def add_script_arguments(self) -> None:
        self.add_argument("args", nargs="*", metavar="ARGS", help="the script's own arguments")

    def error(self, message: str) -> NoReturn:
        usage_error(f"{message}. All flags: {self.prog} --help")


def is_run_folder(folder: Path) -> bool:
    """Also of a second machine, which has no rank 0."""
    return folder.is_dir() and any(folder.glob("run*.db"))


def readable_source(script: str) -> None:
    """Text that Python could compile; what it says is another matter."""
    try:
        with open(script, "rb") as file:
            start = file.read(1 << 16)
    except OSError as error:
        usage_error(f"{script} cannot be read: {error.strerror}")
    if b"\0" in start:
        usage_error(f"{script} is no Python script: it holds binary data")
    if script.endswith(".ipynb"):
        _readable_notebook(script)


def _readable_notebook(script: str) -> None:
    from sawbones.observe.notebook import NotANotebook, read_notebook

    try:
        cells = read_notebook(script)
    except NotANotebook as error:
        usage_error(str(error))
    if not cells:
        usage_error(f"{script} has no code cell")
    for cell in cells:
        for line in cell.left_out:
            say(f"sawbones: left out of {script}[{cell.number}]: {line}", error=True)


def existing_script(script: str, folders: bool = False) -> Path:
    """`folders`: also a folder or zip file with a `__main__.py`, which `python` would run."""
    path = Path(script)
    if not script:
        usage_error("the script '' has no name. Name the file: sawbones diagnose train.py")
    if folders and path.exists():
        from sawbones.observe.main_module import runs_a_folder

        if runs_a_folder(script):
            return path
    if path.is_dir():
        usage_error(
            f"{script} is a folder, a training script was expected. Name the file: "
            f"sawbones diagnose {script}/train.py"
        )
    if not path.is_file():
        near = sorted(
            p.name for p in (path.parent if path.parent.is_dir() else Path()).glob("*.py")
        )[:5]
        listed = f" Scripts there: {', '.join(near)}." if near else ""
        usage_error(f"no script {script}.{listed}")
    return path


def split_script(
    args: list[str], with_value: set[str], parser: argparse.ArgumentParser
) -> tuple[list[str], list[str]]:
    """Our own flags come before the script. What stands behind it belongs to the script, as for
    python; only where the script
    can read no such flag, and we can, it is ours. Behind a `--` before the script nothing is."""
    own, theirs = _split(args, with_value)
    if not theirs or args[len(own)] == "--":
        return own, theirs
    ours, rest = take_back(theirs[0], theirs[1:], parser._option_string_actions, with_value)
    return own + ours, [theirs[0], *rest]


def _split(args: list[str], with_value: set[str]) -> tuple[list[str], list[str]]:
    i = 0
    while i < len(args):
        arg = args[i]
        if arg == "--":
            return args[:i], args[i + 1 :]
        if arg == "-m" and i + 1 < len(args):
            return args[:i], [module_file(args[i + 1]), *args[i + 2 :]]
        if not arg.startswith("-"):
            return args[:i], args[i:]
        i += 2 if arg in with_value and "=" not in arg else 1
    return args, []


def module_file(name: str) -> str:
    """The file that `python -m name` would run, in this folder or installed; the name is left to
    the process that runs it.
    """
    from sawbones.observe.launch import MODULE

    path = Path(*name.split("."))
    if not path.name:
        usage_error(f"-m {name!r} names no module. As for python: sawbones run -m package.train")
    found = next((p for p in (path.with_suffix(".py"), path / "__main__.py") if p.is_file()), None)
    found = found or _installed_module(name)
    if found is None:
        usage_error(
            f"no module {name!r} to run, neither in this folder ({path}.py, "
            f"{path}/__main__.py) nor "
            f"installed. Start from the folder in which `python -m {name}` works."
        )
    os.environ[MODULE] = name
    return str(found)


def _installed_module(name: str) -> Path | None:
    """Found without importing anything of it: that is for the process that runs it."""
    folder, _, rest = name.partition(".")
    spec = PathFinder.find_spec(folder)
    if spec is None:
        return None
    if not rest and spec.submodule_search_locations is None:
        return Path(spec.origin) if spec.origin else None
    for place in spec.submodule_search_locations or ():
        path = Path(place, *rest.split(".")) if rest else Path(place)
        for file in (path.with_suffix(".py"), path / "__main__.py"):
            if file.is_file():
                return file
    return None
