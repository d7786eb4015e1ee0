"""Self-checks of a built pipeline: properties that hold exactly in float64 and that a wrong line
breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .collation import PAD_MULTIPLE, Batch, collate
from .config import RunOptions, TrainConfig
from .distributed import Ranks
from .evaluation import eval_mode
from .loop import accumulate_gradients
from .model import Transformer
from .pipeline import Pipeline, build_pipeline
from .precision import Precision
from .tokenization import BOS_ID, PAD_ID


@dataclass(frozen=True)
class Property:
    """A measured difference that should be nil."""

    name: str
    difference: float
    tolerance: float

    @property
    def holds(self) -> bool:
        return self.difference <= self.tolerance


def _forward(model: Transformer, batch: Batch) -> Tensor:
    logits: Tensor = model(
        batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
    )
    return logits


def _gradient(model: Transformer, batches: list[Batch], precision: Precision) -> list[Tensor]:
    model.zero_grad(set_to_none=True)
    targets = float(sum(batch.num_targets for batch in batches))
    accumulate_gradients(model, batches, precision, Ranks(), targets)
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def accumulation_difference(pipeline: Pipeline) -> float:
    """Largest difference between the gradient of one batch and of its rows in unequal
    micro-batches.
    """
    rows = pipeline.data.train.encoded[:16]
    whole, parts = collate(rows), [collate(rows[:3]), collate(rows[3:9]), collate(rows[9:])]
    moved = [batch.to(pipeline.device) for batch in (whole, *parts)]
    was_training = pipeline.model.training
    pipeline.model.eval()
    one = _gradient(pipeline.model, moved[:1], pipeline.precision)
    several = _gradient(pipeline.model, moved[1:], pipeline.precision)
    pipeline.model.zero_grad(set_to_none=True)
    pipeline.model.train(was_training)
    return max(float((a - b).abs().max()) for a, b in zip(one, several, strict=True))


def cache_difference(model: Transformer, batch: Batch) -> float:
    """Largest difference between logits of the full forward pass and of one column at a time from
    the cache.
    """
    with eval_mode(model):
        full = _forward(model, batch)
        state = model.start(batch.source_BS, batch.source_mask_BS)
        columns = [
            model.step(
                batch.decoder_input_BT[:, t : t + 1], state, batch.decoder_mask_BT[:, t : t + 1]
            )
            for t in range(batch.decoder_input_BT.shape[1])
        ]
        difference = (full - torch.cat(columns, dim=1)).abs().amax(-1)
    return float(difference[batch.decoder_mask_BT].max())


def causality_difference(model: Transformer, batch: Batch) -> float:
    """How far changing the last real input token moves logits of earlier columns."""
    last = batch.decoder_mask_BT.sum(1, keepdim=True) - 1
    changed = batch.decoder_input_BT.scatter(1, last, BOS_ID)
    with eval_mode(model):
        before = _forward(model, batch)
        after = model(batch.source_BS, batch.source_mask_BS, changed, batch.decoder_mask_BT)
    earlier = torch.arange(changed.shape[1], device=changed.device)[None] < last
    return float((before - after).abs().amax(-1)[earlier].max())


def padding_difference(model: Transformer, batch: Batch) -> float:
    """How far more padding moves the logits of real columns."""

    def widen(tensor: Tensor | None, fill: int | bool) -> Tensor | None:
        return (
            None
            if tensor is None
            else torch.nn.functional.pad(tensor, (0, PAD_MULTIPLE), value=fill)
        )

    inputs, mask = widen(batch.decoder_input_BT, PAD_ID), widen(batch.decoder_mask_BT, False)
    assert inputs is not None and mask is not None
    with eval_mode(model):
        before = _forward(model, batch)
        after = model(
            widen(batch.source_BS, PAD_ID), widen(batch.source_mask_BS, False), inputs, mask
        )
    return float((before - after[:, : before.shape[1]]).abs().amax(-1)[batch.decoder_mask_BT].max())


def verify_pipeline(config: TrainConfig, options: RunOptions) -> list[Property]:
    """Measured on a pipeline of its own, before the short run."""
    pipeline = build_pipeline(config, options, Ranks(), torch.device("cpu"))
    batch = collate(pipeline.data.train.encoded[:16])
    checks: list[tuple[str, Callable[[Transformer, Batch], float], float]] = [
        ("decoding with the cache equals the full forward", cache_difference, 1e-5),
        ("no column sees a later token", causality_difference, 1e-9),
        ("padding changes nothing", padding_difference, 1e-9),
    ]
    found = [
        Property(name, measure(pipeline.model, batch), tolerance)
        for name, measure, tolerance in checks
    ]
    name = "micro-batches give the gradient of one batch"
    return [*found, Property(name, accumulation_difference(pipeline), 1e-6)]
