"""What is wrong with the values that a call was given: the arithmetic of their refusal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod

from sawbones.schema import Bound, CrashFrame

# (what must be divisible, by what), under the names that torch's constructors have for them.
_DIVIDED = (
    ("embed_dim", "num_heads"),
    ("d_model", "nhead"),
    ("num_channels", "num_groups"),
    ("in_channels", "groups"),
    ("out_channels", "groups"),
)


def indivisible(frames: list[CrashFrame]) -> tuple[str, int, str, int] | None:
    """(name, value, name, value) of two sizes of a constructor that do not go together."""
    for frame in frames:
        for whole, part in _DIVIDED:
            a, b = (number_of(frame.values.get(name)) for name in (whole, part))
            if a is not None and b and a % b:
                return whole, a, part, b
    return None


def number_of(bound: Bound | None) -> int | None:
    whole = bound is not None and bound.kind == "number" and bound.value is not None
    return int(bound.value) if whole and bound is not None and bound.value is not None else None


def neighbours(size: int, step: int) -> tuple[int, int]:
    """The multiples of step around a size."""
    below = size - size % step
    return below, below + step


def divisors(size: int, most: int = 32) -> list[int]:
    return [n for n in range(1, most + 1) if size % n == 0]


def texts_for_numbers(frames: list[CrashFrame]) -> Iterator[tuple[str, str]]:
    """(argument, text) where the constructor of a layer or optimizer was given a text that reads as
    a number.
    """
    for frame in frames:
        for name, bound in frame.values.items():
            text = bound.keys[0] if bound.kind == "text" and bound.keys else ""
            if text and reads_as_number(text):
                yield name, text


def reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def beyond(bound: Bound, low: int, high: int) -> str:
    """What of a tensor lies outside of [low, high]; "" where nothing does, or is not known."""
    held = bound.settings
    nonfinite = int(held.get("nonfinite") or 0)
    if nonfinite:
        return f"{nonfinite} of {prod(bound.shape)} values are NaN or infinite"
    if "low" not in held or (held["low"] >= low and held["high"] <= high):
        return ""
    return f"values from {held['low']:.4g} to {held['high']:.4g}"


def all_infinite(bound: Bound) -> bool:
    """No value of it is finite: every one was masked."""
    return bool(bound.shape) and bound.settings.get("nonfinite") == prod(bound.shape)


def not_positive(bound: Bound) -> bool:
    lowest = smallest(bound)
    return lowest is not None and lowest <= 0


def smallest(bound: Bound) -> float | None:
    if bound.kind == "sequence":
        numbers = [item.value for item in bound.items if item.value is not None]
        return min(numbers) if numbers else None
    return bound.settings.get("low")


def unordered(bound: Bound) -> bool:
    """Lengths that rise somewhere."""
    if bound.kind == "sequence":
        numbers = [item.value for item in bound.items if item.value is not None]
        return any(b > a for a, b in pairwise(numbers))
    return bound.settings.get("falling") is False


def longer_than(bound: Bound, size: int) -> bool:
    if bound.kind == "sequence":
        numbers = [item.value for item in bound.items if item.value is not None]
        return bool(numbers) and max(numbers) > size
    return bool(bound.settings.get("high", 0) > size)


def runs_backwards(bound: Bound) -> bool:
    """An array that goes through its memory from the end."""
    return bound.kind == "array" and any(step < 0 for step in bound.settings.get("strides") or ())


def num_values(bound: Bound) -> int:
    return prod(bound.shape)
