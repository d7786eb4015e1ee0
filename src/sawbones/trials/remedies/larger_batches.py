"""Every DataLoader gives batches that are a factor larger: on one rank, the global batch of that
many ranks.
"""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from sawbones.trials.remedies import took_hold


def install(recorder: Any, factor: int) -> None:
    real_init = DataLoader.__init__

    def __init__(self: Any, dataset: Any, batch_size: Any = 1, *args: Any, **kwargs: Any) -> None:
        sampler = kwargs.get("batch_sampler")
        if sampler is not None:
            if hasattr(sampler, "batch_size"):
                sampler.batch_size *= factor
            real_init(self, dataset, batch_size, *args, **kwargs)
        else:
            real_init(
                self,
                dataset,
                batch_size * factor if batch_size is not None else None,
                *args,
                **kwargs,
            )
        took_hold(recorder, "larger_batches")

    DataLoader.__init__ = __init__  # type: ignore[method-assign]
