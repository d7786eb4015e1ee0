"""The named loaders give batches of another size; all others stay as they are."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader


def install(recorder: Any, loaders: list[int], batch_size: int = 1) -> None:
    original = DataLoader.__iter__
    others: dict[int, tuple[Any, Any]] = {}

    def __iter__(self: Any) -> Any:
        plain = self.batch_size is not None and self.num_workers == 0 and not self.drop_last
        if not plain or type(self) is not DataLoader or recorder.batches.loader_index(self) not in loaders:
            return original(self)
        found = others.get(id(self))
        if found is None or found[0] is not self:
            other = DataLoader(self.dataset, batch_size=batch_size, sampler=self.sampler, collate_fn=self.collate_fn)
            found = others[id(self)] = (self, other)
        return original(found[1])

    DataLoader.__iter__ = __iter__  # type: ignore[method-assign]
