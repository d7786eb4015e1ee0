"""The named loaders give batches of another size; all others stay as they are."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader


def install(recorder: Any, loaders: list[int], batch_size: int = 1) -> None:
    original, original_len = DataLoader.__iter__, DataLoader.__len__
    others: dict[int, tuple[Any, Any]] = {}

    def other(loader: Any) -> Any:
        """The same data in smaller batches; None for a loader that stays."""
        plain = loader.batch_size is not None and loader.num_workers == 0 and not loader.drop_last
        if (
            not plain
            or type(loader) is not DataLoader
            or recorder.batches.loader_index(loader) not in loaders
        ):
            return None
        found = others.get(id(loader))
        if found is None or found[0] is not loader:
            small = DataLoader(
                loader.dataset,
                batch_size=batch_size,
                sampler=loader.sampler,
                collate_fn=loader.collate_fn,
            )
            found = others[id(loader)] = (loader, small)
        return found[1]

    def __iter__(self: Any) -> Any:
        small = other(self)
        return original(self if small is None else small)

    def __len__(self: Any) -> int:
        small = other(self)
        return original_len(self if small is None else small)

    DataLoader.__iter__ = __iter__  # type: ignore[method-assign]
    DataLoader.__len__ = __len__  # type: ignore[method-assign]
