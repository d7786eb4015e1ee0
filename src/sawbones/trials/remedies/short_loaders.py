"""Every DataLoader ends after a few batches, and says so when its length is asked for: an epoch is
over in seconds, and what comes after it (evaluation, checkpoint, schedule) is reached.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from sawbones.trials.remedies import took_hold


def install(recorder: Any, count: int) -> None:
    real_next = _BaseDataLoaderIter.__next__
    real_length = DataLoader.__len__

    def few(self: Any) -> Any:
        if self._num_yielded >= count:
            took_hold(recorder, "short_loaders")
            raise StopIteration
        return real_next(self)

    def length(self: Any) -> int:
        return min(count, real_length(self))

    _BaseDataLoaderIter.__next__ = few  # type: ignore[method-assign]
    DataLoader.__len__ = length  # type: ignore[method-assign]
