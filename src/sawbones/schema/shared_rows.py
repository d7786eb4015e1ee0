"""Lists of arrays that a script puts together into one: how many of their rows are the same memory."""

from __future__ import annotations

from dataclasses import dataclass

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class SharedRows:
    site: Site | None  # where the lists are put together
    lists: int
    rows: int
    # in which several arrays that are kept are one memory, others not, and it was written over
    shared_lists: int
    shared_rows: int
    buffers: int  # memories of that kind
