"""What the lines of the user's source hold, and which tensors they made before the first step: aids
for finding the line of a fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class SourceCall:
    """A call that seeds, draws, orders, steps, clips, ... (`kind`)."""

    kind: str
    name: str  # as it is written, with its dots
    num_args: int
    site: Site

    @property
    def function(self) -> str:
        """The last part of its name."""
        return self.name.rsplit(".", 1)[-1]


@dataclass(frozen=True, slots=True)
class SourceNumber:
    """A number that is written down, and the name it is given to, "" where there is none."""

    value: float
    name: str
    site: Site


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line that cuts, pads, assigns, splits, fits, ... (`kind`)."""

    kind: str
    name: str
    value: int | None
    site: Site


@dataclass(frozen=True, slots=True)
class MadeTensors:
    """Tensors that one operator of one line made before the first step."""

    op: str
    site: Site | None
    count: int = 1
    shape: tuple[int, ...] = ()  # of the first of them
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class IndexWrites:
    """A line that adds to the places that index tensors name (`a[i] += b`), in numbers of values."""

    writes: int
    values: int
    repeated: int  # at a place that another one of the same write has too
    lost: int  # of those: not kept, and different from the one that is
    counted: int  # of the repeated: the same number is added everywhere
    site: Site | None


def as_site(value: Any) -> Site | None:
    """A site, or what a recording holds of one."""
    if isinstance(value, Site):
        return value
    if isinstance(value, Mapping) and "file" in value and "line" in value:
        return Site(
            str(value["file"]),
            int(value["line"]),
            str(value.get("function", "")),
            str(value.get("code", "")),
        )
    return None
