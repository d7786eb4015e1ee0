"""Hold the random choices of the data set ("data") or of the loop before the model ("loop") at one
value.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data._utils import fetch
from torch.utils.data.dataloader import _BaseDataLoaderIter

from sawbones.observe.random_streams import seed_streams, streams_put_back

SEED = 1234


def install(recorder: Any, mode: str = "data") -> None:
    if mode == "loop":
        real_next = _BaseDataLoaderIter.__next__

        def same_draws(self: Any) -> Any:
            value = real_next(self)
            seed_streams(SEED)
            return value

        _BaseDataLoaderIter.__next__ = same_draws  # type: ignore[method-assign]
        return
    real_init = fetch._MapDatasetFetcher.__init__

    def wrapped(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        real_init(self, _Held(dataset), *args, **kwargs)

    fetch._MapDatasetFetcher.__init__ = wrapped  # type: ignore[method-assign]


class _Held:
    """A data set whose every sample is read from the same state of the random streams."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        with streams_put_back():
            seed_streams(SEED)
            return self._dataset[index]
