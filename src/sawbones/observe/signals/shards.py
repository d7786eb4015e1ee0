"""Gradients of one rank: their norms after the backward pass and again at the optimizer's step, on
the first steps.

Of a sharded model, what lies between the two is clipping: by how much it shrank the gradients must
be the same on every rank. Of any other, it may also be a reduction written by hand. That a model is
sharded is always noted, norms under `diagnose` only. Nothing is communicated: each rank reads its
own part.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch

from sawbones.schema import Site
from sawbones.schema.ranks import GradientNorms, LocalGradients

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

STEPS = 8
MOST = 40  # tensors of a model that is not sharded


class ShardLog:
    def __init__(self, recorder: Recorder) -> None:
        self._r = recorder
        self._params: list[torch.Tensor] | None = None
        self._fact = ""
        self._rows: list[GradientNorms] = []
        self._sites: Counter[Site] = Counter()
        self._after: tuple[float, ...] | None = None

    def backward_ended(self) -> None:
        if self._params is None:
            parts = sharded(self._r)
            self._fact = "shards" if parts else "local_gradients"
            self._params = (
                parts or [p for p in self._r.census.trainable() if p.device.type == "cpu"][:MOST]
            )
            if parts:
                self._r.facts["sharded"] = len(parts)
                self._r.facts["parts_of_all"] = _make_up_the_whole(
                    parts, self._r.census.trainable()
                )
                if self._r.journal is not None:
                    self._r.journal.on_write.append(self._wrote)
        if self._params and len(self._rows) < STEPS and self._r.options.journal:
            self._after = self._norms()

    def step_begins(self) -> None:
        if self._after is None:
            return
        self._rows.append(GradientNorms(self._r.step, self._after, self._norms()))
        self._after = None
        if (
            len(self._rows) >= STEPS
            and self._r.journal is not None
            and self._wrote in self._r.journal.on_write
        ):
            self._r.journal.on_write.remove(self._wrote)
        sites = tuple(site for site, _ in self._sites.most_common(4))
        self._r.facts[self._fact] = LocalGradients(tuple(self._rows), sites)

    def _norms(self) -> tuple[float, ...]:
        return tuple(
            float(_local(p.grad).norm()) if p.grad is not None else 0.0 for p in self._params or ()
        )

    def _wrote(self, name: str, func: Any, args: Any, site: Any) -> None:
        """A gradient is changed in place between the backward pass and the step."""
        if self._after is None or not args:
            return
        grads = [p.grad for p in self._params or () if p.grad is not None]
        pointers = {_local(g).data_ptr() for g in grads}
        for target in args[0] if isinstance(args[0], (list, tuple)) else (args[0],):
            if isinstance(target, torch.Tensor) and (
                any(target is g for g in grads) or _local(target).data_ptr() in pointers
            ):
                found = site()
                if found is not None:
                    self._sites[found] += 1
                return


def _local(tensor: torch.Tensor) -> torch.Tensor:
    to_local = getattr(tensor, "to_local", None)
    plain: torch.Tensor = to_local() if callable(to_local) else tensor
    return plain.detach()


def _make_up_the_whole(parts: list[torch.Tensor], trainable: list[torch.Tensor]) -> bool:
    """Every parameter is cut once, over all ranks: squares of norms may be added up over them."""
    meshes = [getattr(p, "device_mesh", None) for p in parts]
    world = torch.distributed.get_world_size()
    return len(parts) == len(trainable) and all(
        m is not None and m.ndim == 1 and m.size() == world for m in meshes
    )


def sharded(recorder: Recorder) -> list[torch.Tensor]:
    """Parameters of which this rank holds or updates a part: DTensors that are sharded, the flat
    parameters of the first FSDP, and
    those whose optimizer steps on tensors of its own instead (ZeRO: each rank its part, gathered
    again after the step)."""
    census = recorder.census
    trainable = census.trainable()
    flat = any(
        type(m).__name__ == "FullyShardedDataParallel"
        for root in census.roots()
        for m in root.modules()
    )
    held = {
        id(p)
        for optimizer in census.optimizers()
        for group in optimizer.param_groups
        for p in group["params"]
    }
    flat = flat or bool(held and trainable and not held & set(map(id, trainable)))
    return [p for p in trainable if flat or _is_part(p)]


def _is_part(parameter: torch.Tensor) -> bool:
    # DeepSpeed's third stage leaves each rank its part in `ds_tensor`, and hands the optimizer
    # tensors only while it steps.
    return hasattr(parameter, "ds_tensor") or any(
        place.is_shard() for place in getattr(parameter, "placements", ())
    )
