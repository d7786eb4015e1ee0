"""Events: what the training loop did, in order.

Every kind and the keys of its `data` (all JSON values; a key may be missing when it could not be
read cheaply):

| kind          | data |
|---------------|------|
| batch         | loader, wait_ms, num_workers, tensors: [{path, shape, dtype}], index |
| forward       | module, training, grad, inference, autocast, compiled, inputs: [{path, shape, dtype}], top |
| loss          | fn, reduction, ignore_index, weight, smoothing, grad, value; shape and dtype of input and target |
| backward      | value, shape, scaled, retain_graph, carried: gradients that were never cleared since a step, fresh: none |
| scale         | scaler, scale |
| unscale       | scaler, optimizer, scale |
| scaler_step   | scaler, optimizer, scale, skipped |
| scaler_update | scaler, scale_before, scale_after |
| clip          | fn, max_norm, norm, num_tensors |
| step          | optimizer, cls, lr: [per group], skipped, closure: a backward ran in it, uncleared: kept, lost: cleared unused |
| manual_step   | num_changed, of num_looked (parameters changed in place although no optimizer stepped), num_uncleared: kept |
| zero_grad     | target ("optimizer" or "module"), optimizer, set_to_none |
| schedule      | cls, scheduler, lr_before, lr_after, initial, metric: what ReduceLROnPlateau was given |
| mode          | module, training |
| save, load    | path, kinds: [model, optimizer, scheduler, scaler, rng, step, other], keys: [...] |
| seed          | library, value |
| parallel      | cls, world_size |
| set_epoch     | epoch |
| collective    | op, shape, group: number of its ranks where one is named |
| warning       | text |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sawbones.schema.site import Site

EVENT_KINDS = (
    "batch",
    "forward",
    "loss",
    "backward",
    "scale",
    "unscale",
    "scaler_step",
    "scaler_update",
    "clip",
    "step",
    "manual_step",
    "zero_grad",
    "schedule",
    "mode",
    "save",
    "load",
    "seed",
    "parallel",
    "set_epoch",
    "collective",
    "warning",
)


@dataclass(frozen=True, slots=True)
class Event:
    seq: int
    kind: str
    step: int
    microstep: int
    phase: str  # "train" when gradients are on, else "eval"
    time: float  # seconds since the run began
    site: Site | None = None
    rank: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)
