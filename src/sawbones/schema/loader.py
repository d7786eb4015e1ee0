"""A DataLoader of the run, as it was built."""

from __future__ import annotations

from dataclasses import dataclass

from sawbones.schema.site import Site


@dataclass(frozen=True, slots=True)
class Loader:
    index: int
    batch_size: int | None = None
    num_workers: int = 0
    drop_last: bool = False
    sampler: str | None = None  # class names, as are the next but one and the data set's
    sampler_shuffles: bool | None = None
    batch_sampler: str | None = None
    dataset: str = ""
    size: int | None = None  # samples of the data set, None where it does not say
    length: int | None = None  # batches
    site: Site | None = None
    collate_site: Site | None = None  # the user's collate function
    stream_site: Site | None = None  # of an iterable data set: its __iter__
    data: int | None = None  # which data set object: a part of one counts as that one
    held_as: tuple[str, ...] = ()  # names that the script has for it, the outermost first

    @property
    def source(self) -> str:
        """What its batches call it."""
        return f"loader:{self.index}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """The rows that the sampler of a loader gave over the whole run."""

    loader: int
    draws: int
    different: int
    lowest: int
    highest: int
