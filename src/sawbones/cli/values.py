"""Values of flags: each is a type for argparse that says what was wrong with what it was given."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path

MOST_RANKS = 1024  # on one machine; more is a slip of the keyboard that would take the machine down
MOST_JOBS = 256
LARGEST_SEED = 2**32 - 1  # NumPy takes no larger one


def whole(least: int = 1, most: int | None = None) -> Callable[[str], int]:
    between = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def parsed(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r}: a whole number {between} was expected")
        return value

    return parsed


def above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text!r}: a number above 0 was expected")
    return value


def file_to_write(text: str) -> str:
    """A path for a file of ours, or - for standard output."""
    if text == "-":
        return text
    path = Path(text).absolute()
    if not text.strip() or path.is_dir() or text.endswith(os.sep):
        raise argparse.ArgumentTypeError(f"{text!r} is a folder or empty: name a file")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"{text!r}: the folder {path.parent} does not exist. Make it first: mkdir -p "
            f"{Path(text).parent}"
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written: no permission")
    return text


def folder_to_make(text: str) -> str:
    """A folder that is there already, or that can be made."""
    path = Path(text).absolute()
    above = next((p for p in (path, *path.parents) if p.exists() or p.is_symlink()), path)
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a folder")
    if not above.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r}: {above} is a file, a folder was expected")
    if not os.access(above, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{text!r}: nothing can be written in {above}")
    return text


def fault_glob(text: str) -> str:
    """A fault id or a glob that matches at least one; the error names the nearest."""
    from fnmatch import filter as matching

    from sawbones.schema import fault, faults
    from sawbones.schema.errors import SawbonesError

    if not matching(faults(), text):
        try:
            fault(text)
        except SawbonesError as error:
            raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    return text


def tracker(text: str) -> str:
    """tensorboard:FOLDER, wandb, mlflow or trackio, with a place behind the colon or without."""
    from sawbones.integrations.trackers import NotTold, known

    try:
        known(text)
    except NotTold as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


TRACKER_HELP = (
    "also tell a tracker what was found: tensorboard[:FOLDER], wandb, mlflow or trackio "
    "(docs/how-to/trackers.md)"
)
