"""The masker of this process. It knows the environment and the command line before it is asked."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sawbones.masking.masker import Masker


@cache
def masker() -> Masker:
    made = Masker()
    made.learn_environment(os.environ)
    made.learn_arguments(sys.argv[1:])
    return made


def learn_arguments(argv: Sequence[str]) -> None:
    masker().learn_arguments(argv)


def learn_environment() -> None:
    """Once more: a script may have loaded its secrets from a file since."""
    masker().learn_environment(os.environ)


def mask(text: str) -> str:
    return masker().mask(text)


def mask_bytes(content: bytes) -> bytes:
    return masker().mask_bytes(content)


def mask_json(text: str) -> str:
    return masker().mask_json(text)


def mask_all(value: Any) -> Any:
    return masker().mask_all(value)


def mask_arguments(argv: Sequence[str]) -> list[str]:
    return masker().mask_arguments(argv)


def masked_counts() -> dict[str, int]:
    return masker().counts


_HANDED_OVER = "secrets-of-the-script.json"


def hand_over(folder: Path) -> None:
    """For the parent of a script that loaded secrets by itself: it shows the end of what the script
    printed. The folder is the scratch folder, which holds that output in clear anyway and is
    removed.
    """
    learn_environment()
    with contextlib.suppress(OSError):
        path = folder / _HANDED_OVER
        path.touch(mode=0o600)
        path.write_text(json.dumps(masker().known), encoding="utf-8")


def take_over(folder: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        known = json.loads((folder / _HANDED_OVER).read_text(encoding="utf-8"))
        for value, label in known.items():
            masker().learn(value, label)
