"""The masker of this process. It knows the environment and the command line before it is asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
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
