"""What a user allows a script to reach: `--allow network,subprocess,native,files:PATH`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from sawbones.schema.errors import SawbonesError

ALLOWABLE = ("network", "subprocess", "native", "files:PATH")
FILES = "files:"
# A comma may be part of a path: only one in front of the next thing that is allowed separates.
_COMMA = re.compile(r",(?=network\b|subprocess\b|native\b|files:)")
_SPECIAL = ("/proc", "/sys", "/dev")
_SEGMENTS = "/dev/shm/"  # of shared memory, by name


def split(texts: Iterable[str]) -> tuple[str, ...]:
    """Of every `--allow` on the command line."""
    return tuple(word for text in texts for word in _COMMA.split(text) if word)


def checked(words: Sequence[str]) -> tuple[str, ...]:
    """The same, with paths as they are without links; raises where one is not known."""
    unknown = [w for w in words if w not in ALLOWABLE[:-1] and not w.startswith(FILES)]
    if unknown:
        raise SawbonesError(
            f"--allow {','.join(sorted(unknown))}: not known. There are: {', '.join(ALLOWABLE)}"
        )
    return tuple(_with_real_path(w) if w.startswith(FILES) else w for w in words)


def files_in(words: Iterable[str]) -> tuple[str, ...]:
    """The files and folders that the script may really change."""
    return tuple(word.removeprefix(FILES) for word in words if word.startswith(FILES))


def is_below(path: str, folders: Iterable[str]) -> bool:
    return (path + os.sep).startswith(tuple(folder + os.sep for folder in folders))


def _with_real_path(word: str) -> str:
    path = word.removeprefix(FILES)
    real = os.path.realpath(os.path.expanduser(path))
    if not path or not os.path.exists(real):
        raise SawbonesError(
            f"--allow {word}: no such file or folder. Make it first: what is not there cannot be "
            "shared with the script"
        )
    is_special = is_below(real, _SPECIAL) and not real.startswith(_SEGMENTS)
    if real == os.sep or is_special:
        raise SawbonesError(
            f"--allow {word}: not possible. Name a folder of yours that the script is to write to"
        )
    return FILES + real
