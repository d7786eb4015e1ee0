"""The list of ways to write, filled by the files that hold them."""

from __future__ import annotations

from collections.abc import Callable

Way = Callable[[str, str], object]

SERVICES: dict[str, object] = {}
WAYS: dict[str, Way] = {}
NEEDS_TORCH: set[str] = set()


def way(function: Way) -> Way:
    """`function(inside, outside)`: its two folders, the first one relative."""
    WAYS[function.__name__] = function
    return function


def torch_way(function: Way) -> Way:
    NEEDS_TORCH.add(function.__name__)
    return way(function)
