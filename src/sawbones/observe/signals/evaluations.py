"""What is done with a model's outputs where no gradient is wanted: the metric, as far as torch
operators make it.

Every operator that a model output, or something made from one, went into is kept once per place,
with the values that met there. Also which layers were random or took batch statistics in such a
pass, and what inputs the model was given in either phase.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from sawbones.observe.batches import value_range
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.signals.active_layers import DRAWS_OR_MIXES, ActiveLayers
from sawbones.observe.signals.arrays import HANDED_OVER, Told, wrap
from sawbones.observe.signals.met_values import (
    MAX_CLASSES,
    MAX_ELEMENTS,
    MAY_MEET,
    MEETS,
    note_hits,
    note_values,
)
from sawbones.observe.signals.scored import LABEL_READS, Scored
from sawbones.observe.sites import SiteFinder

_MAX_NODES = 200
_MAX_INPUT_ROWS = 400
_MAX_FEATURES = 64
_MAX_READS = 600
_ROWS_COMPARED = 32
_MAX_PRINTED, _LAST_PRINTED = 400, 40
_TAKEN = frozenset({"item", "__float__"})
_SILENT = frozenset(
    {
        "__get__",
        "dim",
        "size",
        "__len__",
        "is_floating_point",
        "stride",
        "__set__",
        "_set_grad_enabled",
    }
)
# What is given second lends its shape or its type alone.
_SHAPED_AS = frozenset({"view_as", "reshape_as", "expand_as", "type_as"})


class EvaluationLog:
    """`record` is what a run keeps: active, nodes, passes, inputs."""

    def __init__(self, sites: SiteFinder) -> None:
        self._sites = sites
        self._tags: dict[
            int, tuple[Any, str, tuple[int, ...]]
        ] = {}  # tensor -> weak reference, role, nodes it came from
        self._nodes: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.layers = ActiveLayers(sites)
        self._sizes: dict[int, int] = {}  # node -> how many values its latest call took in
        self._step = -1
        # the model call in progress is looked through for a result that is the same for all samples
        self._following = False
        self._before = ""
        self._num_inputs = {"train": 0, "eval": 0}
        # told what outputs are compared with
        self.on_target: Callable[..., Any] | None = None
        # told which of them are equal to what they are compared with
        self.on_equal: Callable[[torch.Tensor, torch.Tensor], None] | None = None
        self.record: dict[str, Any] = {
            "active": self.layers.record,
            "nodes": [],
            "passes": [],
            "inputs": [],
            "printed": [],
            "constant": [],
            "scored": [],
        }
        self._scored = Scored(sites, self.record["scored"])

    # the model

    def called(self, phase: str, step: int, given: Any, batch: Any, model: str = "") -> None:
        """A top-level call of a model of this class begins."""
        self._note_inputs(phase, step, given, model)
        self._tags.clear()
        inputs = {id(t) for _, t in tensors_in(given)}
        loaded = [t for _, t in tensors_in(batch)] if batch is not None else []
        beside = [t for t in loaded if id(t) not in inputs]
        # The latest batch of a loader may be one of training.
        is_fed = len(beside) < len(loaded)
        self._scored.called(step, phase == "eval", beside if is_fed else [])
        if phase == "eval":
            self.layers.called(step, given, batch)
            if step != self._step:
                self._step = step
                self.record["passes"] = [
                    *self.record["passes"],
                    {"step": step, "calls": 0, "predictions": {}},
                ][-400:]
            self.record["passes"][-1]["calls"] += 1
            self._following = (
                step >= 20
                and self.record["passes"][-1]["calls"] == 1
                and len(self.record["passes"]) <= 20
            )
            for tensor in beside:
                self._tag(tensor, "target", ())

    def returned(self, phase: str, result: Any) -> None:
        if phase != "eval":
            return
        found = [t for _, t in tensors_in(result)]
        for tensor in found:
            self._tag(tensor, "output", ())
        main = next((t for t in found if t.is_floating_point() and t.dim() >= 1), None)
        if main is not None and main.device.type == "cpu" and 0 < main.numel() <= MAX_ELEMENTS:
            self._count_predictions(main.detach())
            self._scored.answered(main)

    def _count_predictions(self, plain: torch.Tensor) -> None:
        if plain.dim() == 2 and 2 <= plain.shape[1] <= MAX_CLASSES:
            classes = plain.argmax(1)
            kind = f"argmax of {plain.shape[1]}"
        elif plain.dim() == 1 or (plain.dim() == 2 and plain.shape[1] == 1):
            classes, kind = (plain.reshape(-1) > 0).long(), "sign"
        else:
            return
        counts = self.record["passes"][-1]["predictions"].setdefault(kind, {})
        for value, count in zip(
            *[x.tolist() for x in classes.unique(return_counts=True)], strict=True
        ):
            counts[str(value)] = counts.get(str(value), 0) + count

    def _note_inputs(self, phase: str, step: int, given: Any, model: str) -> None:
        number = self._num_inputs[phase] = self._num_inputs[phase] + 1
        if (number > 24 and number % 25) or len(self.record["inputs"]) >= _MAX_INPUT_ROWS:
            return
        site = self._sites.find()
        for path, tensor in tensors_in(given)[:4]:
            if (
                tensor.device.type != "cpu"
                or not 0 < tensor.numel() <= MAX_ELEMENTS
                or tensor.layout is not torch.strided
            ):
                continue
            if not tensor.is_floating_point():
                continue
            plain = tensor.detach()
            row = {
                "phase": phase,
                "step": step,
                "path": path,
                "model": model,
                "shape": list(plain.shape),
                "site": site,
                "fed_back": self._is_output(tensor),
                **value_range(plain),
            }
            if plain.dim() >= 2 and 2 <= plain.shape[1] <= _MAX_FEATURES and plain.shape[0] >= 4:
                features = plain.double().transpose(0, 1).reshape(plain.shape[1], -1)
                row["feature_mean"], row["feature_std"] = (
                    features.mean(1).tolist(),
                    features.std(1).tolist(),
                )
            if plain.dim() >= 2 and plain[0].numel() >= 4:
                row["within"] = float(plain.double().flatten(1).std(1).median())  # of one sample
            self.record["inputs"].append(row)

    # operators

    def looks_inside(self, name: str) -> bool:
        return self._following or name in DRAWS_OR_MIXES

    def looks_outside(self, name: str, result: Any) -> bool:
        if not self._tags:
            return False
        return isinstance(result, torch.Tensor) if name == "__get__" else name not in _SILENT

    def inside(
        self, name: str, args: Any, kwargs: Mapping[str, Any], result: Any, training: bool
    ) -> None:
        """An operator of a model that runs without gradients: does it draw, or use the statistics
        of the batch?
        """
        if self._following:
            self._follow(name, args, result)
        self.layers.heard(name, args, kwargs, training)

    def _follow(self, name: str, args: Any, result: Any) -> None:
        """The first operator whose results are the same for all samples although what went in was
        not.
        """
        if not isinstance(result, torch.Tensor) or not _by_row(result):
            return
        given = [t for _, t in tensors_in(args) if _by_row(t) and t.shape[0] == result.shape[0]]
        scale = max((float(t.detach()[:_ROWS_COMPARED].abs().max()) for t in given), default=0.0)
        small = 1e-5 * max(scale, 1e-12)
        alike = (
            bool(given)
            and _spread_over_rows(given[0]) > 100 * small
            and _spread_over_rows(result) <= small
        )
        if alike or any(_one_choice(t, result) for t in given[:2]):
            self._following = (
                not alike
            )  # hidden features may agree on the largest by chance: the last place counts
            row = {
                "op": name,
                "site": self._sites.find(),
                "step": self._step,
                "after": self._before,
            }
            self.record["constant"] = [*self.record["constant"], row][-6:]
        self._before = name

    def outside(self, name: str, args: Any, kwargs: Mapping[str, Any], result: Any) -> None:
        """An operator of the loop itself, without gradients."""
        if name == "__get__":
            self._same(args, result)
        if name in _SILENT or not self._tags:
            return
        if name in _SHAPED_AS:
            args, kwargs = args[:1], {}
        given = [t for _, t in tensors_in((args, dict(kwargs)))]
        tags = self._tags_of(given)
        if name in LABEL_READS:
            self._note_labels(given, tags)
        if not any(tags):
            return
        roles = tuple(tag[1] if tag else "other" for tag in tags)
        self._tell_targets(name, given, roles)
        if "output" in roles:
            self.layers.used()
        node = self._node(name, roles, _scalars(args, kwargs), len(given))
        if node is None:
            return
        node["count"] += 1
        if self._step not in node["steps"]:
            node["steps"] = [*node["steps"], self._step][-50:]
            node["num_steps"] = node.get("num_steps", 0) + 1
        for tag in tags:
            node["sources"] += [n for n in (tag[2] if tag else ()) if n not in node["sources"]]
        outputs = [t for _, t in tensors_in(result)]
        self._sizes[node["id"]] = min((t.numel() for t in given[:2] if t.dim()), default=1)
        if name in _TAKEN and given[0].numel() == 1:
            self._note_read(node, given[0], tags)
        if node["count"] <= 200:
            note_values(node, given, outputs)
        if name == "eq":
            self._equal(node, given, roles, outputs)
            self._tag_targets(given, tags)
        role = "output" if "output" in roles else "target"
        for tensor in outputs:
            self._tag(tensor, role, (node["id"],))

    def _equal(
        self,
        node: dict[str, Any],
        given: list[torch.Tensor],
        roles: tuple[str, ...],
        outputs: list[torch.Tensor],
    ) -> None:
        if roles.count("output") == 1 and len(roles) == 2 and outputs:
            asked = given[1 - roles.index("output")]
            note_hits(node, self._step, outputs[0], asked)
        if self.on_equal is not None and sorted(roles)[1:] == ["output"] and outputs:
            self.on_equal(given[1 - roles.index("output")], outputs[0])

    def _tell_targets(self, name: str, given: list[torch.Tensor], roles: tuple[str, ...]) -> None:
        if self.on_target is None or "output" not in roles or name not in MEETS | MAY_MEET:
            return
        for tensor, role in zip(given, roles, strict=True):
            if role != "output":
                self.on_target(tensor, name in MEETS)

    def _note_read(self, node: dict[str, Any], value: torch.Tensor, tags: list[Any]) -> None:
        """A number is read off: its value, and how many values it was made of."""
        reads = node.setdefault("reads", [])
        if len(reads) >= _MAX_READS:
            return
        size = max((self._sizes.get(n, 1) for tag in tags if tag for n in tag[2]), default=1)
        reads.append([self._step, float(value.detach()), size])
        calls = self.record["passes"][-1]["calls"] if self.record["passes"] else 0
        node.setdefault("read_calls", []).append(calls)

    def _note_labels(self, given: list[torch.Tensor], tags: list[Any]) -> None:
        for tag, tensor in zip(tags, given, strict=True):
            self._scored.seen(tensor, tag is not None and tag[1] == "output")

    def _is_output(self, tensor: torch.Tensor) -> bool:
        """Made from what the model said before, as the steps of a sampler are."""
        (tag,) = self._tags_of([tensor])
        return tag is not None and tag[1] == "output"

    def _tag_targets(self, given: list[torch.Tensor], tags: list[Any]) -> None:
        """What outputs are compared with is the target, wherever it came from."""
        for tag, tensor in zip(tags, given, strict=True):
            if tag is None:
                self._tag(tensor, "target", ())

    def _tags_of(self, given: list[torch.Tensor]) -> list[Any]:
        tags = [self._tags.get(id(t)) for t in given]
        return [
            tag if tag is not None and tag[0]() is tensor else None
            for tag, tensor in zip(tags, given, strict=True)
        ]

    def _same(self, args: Any, result: Any) -> None:
        """What `.data` or `.T` gives is still the output, or the target, that it was taken of."""
        tag = self._tags.get(id(args[0])) if args else None
        if tag is not None and tag[0]() is args[0] and isinstance(result, torch.Tensor):
            self._tag(result, tag[1], tag[2])

    def _node(
        self, name: str, roles: tuple[str, ...], scalars: tuple[Any, ...], num_given: int
    ) -> dict[str, Any] | None:
        """The row of this operator at this place; None where there are too many."""
        site = self._sites.find()
        key = (name, site, roles, scalars)
        node = self._nodes.get(key)
        if node is None and len(self._nodes) < _MAX_NODES:
            node = self._nodes[key] = {
                "id": len(self._nodes),
                "op": name,
                "site": site,
                "roles": list(roles),
                "args": list(scalars),
                "sources": [],
                "count": 0,
                "given": [{} for _ in range(num_given)],
                "result": {},
                "steps": [],
            }
            self.record["nodes"].append(node)
        return node

    def printed(self, step: int, text: str) -> None:
        """A line that the script prints once outputs of an evaluation were seen."""
        if self._step == step and any(c == "." for c in text):
            printed = self.record["printed"]
            if len(printed) >= _MAX_PRINTED:
                del printed[-_LAST_PRINTED]  # how a run ends is told, however long it was
            printed.append([step, text[:400]])

    # arrays

    def as_array(self, tensor: torch.Tensor, array: Any) -> Any:
        """What `.numpy()` gives: an array that goes on telling, where the tensor is an output."""
        tag = self._tags.get(id(tensor))
        if (
            tag is None
            or tag[0]() is not tensor
            or tag[1] != "output"
            or type(array) is not np.ndarray
            or array.ndim == 0
        ):
            return array
        return wrap(array, self._array_used, "output", tag[2])

    def _array_used(
        self, name: str, given: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> tuple[str, tuple[int, ...]] | None:
        """Arrays are read as tensors, so that one and the same reading serves both."""
        if name == HANDED_OVER:
            for tensor in map(_as_tensor, given[1:]):
                if self.on_target is not None and isinstance(tensor, torch.Tensor):
                    self.on_target(tensor)
            return None
        with torch.no_grad(), torch._C.DisableTorchFunction():
            args = [_as_tensor(x) for x in given]
            for value, tensor in zip(given, args, strict=True):
                if isinstance(value, Told) and isinstance(tensor, torch.Tensor):
                    self._tag(tensor, value.role, value.nodes)
            made = _as_tensor(result)
            if not isinstance(made, torch.Tensor):
                made = None
            self.outside(name, args, kwargs, made)
            tag = self._tags.get(id(made)) if made is not None else None
            for tensor in (*args, made):
                self._tags.pop(id(tensor), None)
        return (tag[1], tag[2]) if tag is not None else None

    def finish(self) -> None:
        self._scored.finish()

    @property
    def has_passes(self) -> bool:
        """Evaluations of its own, not taken over from another log."""
        return bool(self._nodes or self.layers.record or self._step >= 0)

    def taken_over(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """This log's record, for another that has the inputs of training."""
        known = [row for row in record["inputs"] if row["phase"] == "train"]
        return {
            **{key: rows for key, rows in self.record.items() if key != "streams"},
            "inputs": [*known, *self.record["inputs"]],
        }

    @property
    def waits(self) -> bool:
        """Outputs of an evaluation are at large."""
        return bool(self._tags)

    def _tag(self, tensor: torch.Tensor, role: str, nodes: tuple[int, ...]) -> None:
        if len(self._tags) < 2000:
            self._tags[id(tensor)] = (weakref.ref(tensor), role, nodes)


def _by_row(tensor: torch.Tensor) -> bool:
    plain = (
        tensor.is_floating_point()
        and tensor.dim() >= 2
        and tensor.shape[0] >= 8
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
    )
    return (
        plain
        and not isinstance(tensor, torch.nn.Parameter)
        and tensor.numel() > 0
        and not tensor.is_nested
    )


def _one_choice(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Scores of classes that chose different ones now all choose the same."""
    if (
        before.shape != after.shape
        or after.dim() != 2
        or not 2 <= after.shape[1] <= MAX_CLASSES
        or after.requires_grad
    ):
        return False
    chosen, then = after.detach().argmax(1), before.detach().argmax(1)
    return (
        bool((chosen == chosen[0]).all())
        and float((then == then.mode().values).float().mean()) < 0.8
    )


def _spread_over_rows(tensor: torch.Tensor) -> float:
    plain = tensor.detach()[:_ROWS_COMPARED]
    return float((plain - plain[:1]).abs().max())


def _as_tensor(value: Any) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in "fiub":
        return torch.tensor(value.item())
    if (
        not isinstance(value, np.ndarray)
        or value.dtype.kind not in "fiub"
        or value.size > MAX_ELEMENTS
    ):
        return value
    plain = np.array(value)
    return torch.from_numpy(
        plain.astype(np.int64) if plain.dtype.kind == "u" and plain.dtype.itemsize > 1 else plain
    )


def _scalars(args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    plain = [a for a in args if isinstance(a, (int, float, bool, str))]
    return (
        *plain,
        *(f"{k}={v}" for k, v in kwargs.items() if isinstance(v, (int, float, bool, str))),
    )
