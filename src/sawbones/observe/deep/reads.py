"""Single positions that a model reads out of a sequence (its last state, a token at an index), and
whether padding stands there.

By value: an operator that turns (batch, time, features) into (batch, features) and whose every row
is a copy of one position.
"""

from __future__ import annotations

from typing import Any

import torch

from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.roles import Source

_READING = frozenset(
    {"__getitem__", "select", "gather", "take_along_dim", "index_select", "squeeze", "narrow"}
)
_MAX_READS = 8


def find(graph: OpGraph, sources: list[Source]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for source in sources:
        padding = source.padding
        if padding is None or source.role != "tokens" or source.index.dim() != 2:
            continue
        for op in graph.ops:
            if (
                op.silent
                or op.name not in _READING
                or not op.inputs
                or not op.outputs
                or len(found) >= _MAX_READS
            ):
                continue
            states = _by_example(op.inputs[0].tensor(), padding)
            read = op.outputs[0].tensor()
            if states is None or read is None or not states.is_floating_point():
                continue
            read = read.squeeze(1) if read.dim() == 3 and read.shape[1] == 1 else read
            if read.shape != (states.shape[0], states.shape[2]):
                continue
            places = _places(states, read.to(states.device))
            if places is None:
                continue
            padded = padding.any(1)
            on_padding = padding.gather(1, places.clamp(min=0).unsqueeze(1)).squeeze(1) & (
                places >= 0
            )
            found.append(
                {
                    "op": op.index,
                    "name": op.name,
                    "site": op.site,
                    "rows": len(places),
                    "padded_rows": int(padded.sum()),
                    "on_padding": int(on_padding.sum()),
                    "pad_side": source.pad_sides.get(source.time_dim),
                    "at": places[:16].tolist(),
                    "lengths": (~padding).sum(1)[:16].tolist(),
                    "width": int(padding.shape[1]),
                }
            )
    return found


def _by_example(states: torch.Tensor | None, padding: torch.Tensor) -> torch.Tensor | None:
    if states is None or states.dim() != 3:
        return None
    if tuple(states.shape[:2]) == tuple(padding.shape):
        return states
    return (
        states.transpose(0, 1)
        if (states.shape[1], states.shape[0]) == tuple(padding.shape)
        else None
    )


def _places(states: torch.Tensor, read: torch.Tensor) -> torch.Tensor | None:
    """For every example the position whose state was read, the last of equal ones; None when the
    rows are not copies.
    """
    equal = (states == read.unsqueeze(1)).all(-1)
    if not bool(equal.any(1).all()):
        return None
    width = equal.shape[1]
    return width - 1 - equal.flip(1).to(torch.int64).argmax(1).cpu()
