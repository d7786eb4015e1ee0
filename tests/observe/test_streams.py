"""Windows of a long text are counted for training and for evaluations apart, by the places they
cover.
"""

from __future__ import annotations

from typing import Any

import torch

from sawbones.observe.signals.streams import Streams

TEXT = torch.arange(1000)


def _read(streams: Streams, source: torch.Tensor, key: Any, phase: str, step: int) -> None:
    streams.sliced((source, key), source[key], "here")
    streams.called(phase, step)


def test_windows_keep_their_places_in_the_whole_text() -> None:
    rows: list[dict[str, Any]] = []
    streams = Streams(rows)
    _read(streams, TEXT[:900], slice(10, 42), "train", 0)
    _read(streams, TEXT[900:], slice(5, 37), "eval", 1)
    assert len(rows) == 1 and rows[0]["size"] == 1000
    assert rows[0]["train"] == {"first": 10, "last": 41, "windows": 1}
    assert rows[0]["eval"] == {"first": 905, "last": 936, "windows": 1}
    assert rows[0]["steps"] == [1]


def test_a_table_of_indices_is_read_row_by_row() -> None:
    rows: list[dict[str, Any]] = []
    streams = Streams(rows)
    places = torch.tensor([[3], [500]]) + torch.arange(16)
    _read(streams, TEXT, places, "train", 0)
    assert rows[0]["train"] == {"first": 3, "last": 515, "windows": 2}


def test_a_split_is_no_window() -> None:
    rows: list[dict[str, Any]] = []
    streams = Streams(rows)
    _read(streams, TEXT, slice(None, 900), "train", 0)
    _read(streams, TEXT, slice(900, None), "eval", 0)
    assert rows == []
