"""Windows cut out of one long row of whole numbers: which stretch of it training reads, and which
the evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_MAX_STREAMS = 16
_MAX_PENDING = 4096
_MIN_SIZE = 256  # shorter rows are samples, not texts


class Streams:
    """`record` is what a run keeps: one row per storage, with the stretch that either phase reads
    and the line that cuts it.
    """

    def __init__(self, record: list[dict[str, Any]]) -> None:
        self.record = record
        self._rows: dict[int, dict[str, Any]] = {}
        self._kept: list[Any] = []  # the storages, so that no other is given their address
        self._pending: list[tuple[int, int, int]] = []  # storage, first, last

    @staticmethod
    def concerns(args: Sequence[Any]) -> bool:
        """Quickly, and never too seldom: rows of samples are not cut out of a text."""
        source = args[0]
        return type(source) is not torch.Tensor or (
            source.dim() == 1 and not source.is_floating_point()
        )

    def sliced(self, args: Sequence[Any], result: Any, site: Any) -> None:
        """`text[a:b]`, or `text[indices]`."""
        source, key = args[0], args[1] if len(args) > 1 else None
        if (
            not isinstance(source, torch.Tensor)
            or source.dim() != 1
            or source.is_floating_point()
            or source.dtype == torch.bool
        ):
            return
        if source.device.type != "cpu" or len(self._pending) >= _MAX_PENDING:
            return
        storage = source.untyped_storage()
        size = storage.nbytes() // source.element_size()
        first, last = self._stretch(source, key, result)
        if size < _MIN_SIZE or last <= first or last - first > 0.2 * size:
            return  # a split, or the whole
        row = self._rows.get(storage.data_ptr())
        if row is None:
            if len(self._rows) >= _MAX_STREAMS:
                return
            row = self._rows[storage.data_ptr()] = {"size": size, "site": site, "steps": []}
            row |= {phase: {"first": -1, "last": -1, "windows": 0} for phase in ("train", "eval")}
            self._kept.append(storage)
            self.record.append(row)
        if isinstance(key, torch.Tensor):
            per_row = key.reshape(key.shape[0], -1) if key.dim() > 1 else key.reshape(1, -1)
            offset = int(source.storage_offset())
            low, high = per_row.amin(1).tolist(), per_row.amax(1).tolist()
            self._pending += [
                (storage.data_ptr(), offset + a, offset + b) for a, b in zip(low, high, strict=True)
            ]
        else:
            self._pending.append((storage.data_ptr(), first, last))

    @staticmethod
    def _stretch(source: torch.Tensor, key: Any, result: Any) -> tuple[int, int]:
        closed = (
            isinstance(key, slice) and key.start is not None and key.stop is not None
        )  # open ones split a text in two
        if closed and isinstance(result, torch.Tensor) and result.numel() > 1 and result.dim() == 1:
            return int(result.storage_offset()), int(result.storage_offset()) + result.numel() - 1
        whole = (
            isinstance(key, torch.Tensor)
            and not key.is_floating_point()
            and key.dtype != torch.bool
            and key.numel() > 1
        )
        if whole and key.dim() == 2 and int(key.min()) >= 0:
            width = int((key.amax(1) - key.amin(1)).max())
            return 0, width
        return 0, 0

    def called(self, phase: str, step: int) -> None:
        """The model gets what was cut since its last call."""
        for number, first, last in self._pending:
            row = self._rows[number]
            part = row[phase]
            part["first"] = min(part["first"], first) if part["windows"] else first
            part["last"] = max(part["last"], last)
            part["windows"] += 1
            if phase == "eval" and step not in row["steps"] and len(row["steps"]) < 50:
                row["steps"].append(step)
        self._pending = []
