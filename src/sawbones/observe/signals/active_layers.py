"""Layers that draw, or take the statistics of the batch, in a model that runs without gradients.

Whether such a call was an evaluation shows in what comes after it: a batch that a call with
gradients is given next is one of training (a teacher, pseudo labels, assignments to clusters).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import torch

from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.sites import SiteFinder
from sawbones.schema import Site

_MAX_ROWS = 200
_DROPS = frozenset(
    {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}
)
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
_ATTENTION = frozenset({"multi_head_attention_forward", "scaled_dot_product_attention"})
DRAWS_OR_MIXES = _DROPS | _RECURRENT | _ATTENTION | {"batch_norm"}


class ActiveLayers:
    """`record`: a row for each place, step and line that calls the model."""

    def __init__(self, sites: SiteFinder) -> None:
        self._sites = sites
        self.record: list[dict[str, Any]] = []
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._step = -1
        self._line: Site | None = None  # that calls the model
        self._touched: list[dict[str, Any]] = []  # by the latest model call
        self._loaded: Any = None  # the batch that the latest calls were given
        self._given: list[weakref.ref[torch.Tensor]] = []
        self._num_rows: list[int] = []
        self._of_batch: list[dict[str, Any]] = []  # one row for each call with this batch

    def called(self, step: int, given: Any, loaded: Any) -> None:
        """A call without gradients begins. `loaded`: the latest batch, held until the next call."""
        if not self._is_latest(given, loaded):
            self._of_batch = []
        tensors = [t for _, t in tensors_in(given)]
        self._loaded, self._given = loaded, [weakref.ref(t) for t in tensors]
        self._num_rows = [len(t) for t in tensors[:1] if t.dim()]
        self._step, self._line, self._touched = step, self._sites.find(), []

    def learns(self, given: Any, loaded: Any) -> None:
        """A call with gradients begins: was its batch that of the calls before?"""
        self._touched = []
        if self._of_batch and self._is_latest(given, loaded):
            for row in self._of_batch:
                row["trained"] += 1
        self._of_batch, self._loaded, self._given = [], None, []

    def _is_latest(self, given: Any, loaded: Any) -> bool:
        known = [tensor for ref in self._given if (tensor := ref()) is not None]
        tensors = [t for _, t in tensors_in(given)]
        if any(t is k for t in tensors for k in known):
            return True
        # Changed at random in between, say. An evaluation in the middle of an epoch may have the
        # same batch in hand, and gives the model other rows.
        same = loaded is not None and loaded is self._loaded
        return same and [len(t) for t in tensors[:1] if t.dim()] == self._num_rows

    def heard(self, name: str, args: Any, kwargs: Mapping[str, Any], training: bool) -> None:
        kind = _random_or_batchwise(name, args, kwargs)
        if kind is None:
            return
        site = self._sites.find()
        key = (name, site, training, self._step, self._line)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MAX_ROWS:
                return
            row = self._rows[key] = {
                "op": name,
                "kind": kind,
                "site": site,
                "line": self._line,
                "training": training,
                "step": self._step,
                "count": 0,
                "calls": 0,
                "trained": 0,
                "used": False,  # whether anything was done with the outputs
            }
            self.record.append(row)
        row["count"] += 1
        if not any(row is known for known in self._touched):
            row["calls"] += 1
            self._touched.append(row)
            self._of_batch.append(row)

    def used(self) -> None:
        """Something was done with the outputs of the latest call."""
        for row in self._touched:
            row["used"] = True


def _random_or_batchwise(name: str, args: Any, kwargs: Mapping[str, Any]) -> str | None:
    def argument(place: int, key: str, default: Any) -> Any:
        return kwargs.get(key, args[place] if len(args) > place else default)

    if name in _DROPS:
        return (
            "dropout" if argument(2, "training", True) and 0 < argument(1, "p", 0.5) < 1 else None
        )
    if (
        name == "batch_norm"
    ):  # without running statistics a layer has nothing but those of the batch: meant so
        return (
            "batch statistics"
            if argument(5, "training", False) and argument(1, "running_mean", None) is not None
            else None
        )
    if name == "multi_head_attention_forward":
        return (
            "dropout"
            if kwargs.get("training", True) and argument(10, "dropout_p", 0.0) > 0
            else None
        )
    if name == "scaled_dot_product_attention":
        return "dropout" if argument(4, "dropout_p", 0.0) > 0 else None
    if name in _RECURRENT:
        numbers = [a for a in args if isinstance(a, float)]
        flags = [a for a in args if isinstance(a, bool)]
        layers = next((a for a in args if isinstance(a, int) and not isinstance(a, bool)), 1)
        return (
            "dropout"
            if numbers and numbers[0] > 0 and layers > 1 and len(flags) > 1 and flags[1]
            else None
        )
    return None
