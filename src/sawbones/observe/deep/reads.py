"""Single positions that a model reads out of a sequence (its last state, a token at an index), and
whether padding stands there.

By value: an operator that turns (batch, time, features) into (batch, features) and whose every row
is a copy of one position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sawbones.observe.deep import blanks
from sawbones.observe.deep.graph import OpGraph
from sawbones.observe.deep.measure import listed
from sawbones.observe.deep.roles import Source
from sawbones.observe.deep.trace import RawOp

_READING = frozenset(
    {"__getitem__", "select", "gather", "take_along_dim", "index_select", "squeeze", "narrow"}
)
_RECURRENT = frozenset({"gru", "lstm", "rnn_tanh", "rnn_relu"})
_MAX_READS = 8
_WHOLE = (torch.int64, torch.int32)


@dataclass(frozen=True)
class _Padded:
    """Rows of a batch, and where they are padded."""

    padding: torch.Tensor  # (batch, time), True where padding stands
    side: str | None
    told: bool | None  # the model was given their lengths; None for tokens, whose padding has an id


def find(
    graph: OpGraph, sources: list[Source], given: Sequence[torch.Tensor] = ()
) -> list[dict[str, Any]]:
    """`given`: what the model was called with."""
    found: list[dict[str, Any]] = []
    for rows in [*_token_rows(sources), *_blank_rows(graph, given)]:
        padding = rows.padding
        for op in graph.ops:
            if (
                op.silent
                or op.name not in _READING
                or not op.inputs
                or not op.outputs
                or len(found) >= _MAX_READS
            ):
                continue
            places = _read_places(graph, op, padding)
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
                    "pad_side": rows.side,
                    "lengths_told": rows.told,
                    "at": listed(places[:16]),
                    "lengths": listed((~padding).sum(1)[:16]),
                    "width": int(padding.shape[1]),
                }
            )
    return found


def _token_rows(sources: list[Source]) -> Iterator[_Padded]:
    for source in sources:
        padding = source.padding
        if padding is not None and source.role == "tokens" and source.index.dim() == 2:
            yield _Padded(padding, source.pad_sides.get(source.time_dim), None)


def _blank_rows(graph: OpGraph, given: Sequence[torch.Tensor]) -> Iterator[_Padded]:
    """Rows of numbers that end in zeros: padding for certain where their lengths are given too."""
    whole = [t.detach().flatten().cpu() for t in given if t.dtype in _WHOLE and t.dim() <= 2]
    for blank in blanks.positions(graph):
        padding = blank.cpu()
        lengths = (~padding).sum(1)
        told = any(torch.equal(t.long(), lengths) for t in whole)
        yield _Padded(padding, "right" if bool(padding[:, -1].any()) else "left", told)


def _read_places(graph: OpGraph, op: RawOp, padding: torch.Tensor) -> torch.Tensor | None:
    """The position of every row that an operator reads; None where it reads none. The last states
    that a recurrent layer returns beside all of them are those of one position, too.
    """
    states = _by_example(op.inputs[0].tensor(), padding)
    if states is None:
        maker = graph.maker(op.inputs[0], op.index)
        if maker is not None and maker.name in _RECURRENT:
            states = _by_example(maker.outputs[0].tensor(), padding)
    read = op.outputs[0].tensor()
    if states is None or read is None or not states.is_floating_point():
        return None
    read = read.squeeze(1) if read.dim() == 3 and read.shape[1] == 1 else read
    if read.shape != (states.shape[0], states.shape[2]):
        return None
    return _places(states, read.to(states.device))


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
