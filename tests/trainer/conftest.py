from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sawbones.trainer.config import DataConfig, ModelConfig, RunOptions, TrainConfig
from sawbones.trainer.distributed import Ranks
from sawbones.trainer.pipeline import Pipeline, build_pipeline


def small(
    task: str = "reverse", arch: str = "encoder-decoder", positions: str = "sinusoidal", **more: Any
) -> TrainConfig:
    """A run of milliseconds per step, with dropout and augmentation on."""
    data = DataConfig(
        task=task,
        tokenizer="bpe" if task in ("translation", "lm") else "char",
        num_train=200,
        num_val=24,
        num_test=24,
        max_length=8,
        augment=0.3,
    )
    arch = "decoder-only" if task == "lm" else arch
    model = ModelConfig(
        arch=arch, positions=positions, d_model=16, num_heads=2, num_layers=2, d_ff=32, dropout=0.1
    )
    return replace(
        TrainConfig(data=data, model=model, steps=6, batch_size=16, eval_every=100, seed=3), **more
    )


@pytest.fixture
def make_config() -> Callable[..., TrainConfig]:
    return small


@pytest.fixture
def make_pipeline(tmp_path: Path) -> Callable[[TrainConfig], Pipeline]:
    def make(config: TrainConfig) -> Pipeline:
        return build_pipeline(config, RunOptions(out=tmp_path), Ranks(), torch.device("cpu"))

    return make
