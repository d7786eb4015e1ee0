"""What the lab's scripts learn from: the tasks of the reference trainer, small, and a model of
matching size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sawbones.trainer.config import DataConfig, ModelConfig, TrainConfig
from sawbones.trainer.data import TaskData, build_data
from sawbones.trainer.model import Transformer
from sawbones.trainer.tokenization import EOS_ID


def text_data(task: str, seed: int, num_train: int = 1280) -> TaskData:
    tokenizer = "bpe" if task in ("lm", "translation") else "char"
    sizes = DataConfig(
        task=task,
        tokenizer=tokenizer,
        seed=seed,
        num_train=num_train,
        num_val=96,
        num_test=8,
        max_length=8,
        bpe_vocab_size=96,
        augment=0.0,
    )
    return build_data(TrainConfig(data=sizes, seed=seed))


def token_blocks(data: TaskData, width: int) -> Tensor:
    """The training texts one after another, cut into rows of equal length: no padding."""
    stream = [token for example in data.train.encoded for token in (*example.target, EOS_ID)]
    rows = len(stream) // width
    return torch.tensor(stream[: rows * width]).view(rows, width)


def small_transformer(
    data: TaskData, arch: str = "encoder-decoder", dropout: float = 0.0
) -> Transformer:
    shape = ModelConfig(
        arch=arch,
        vocab_size=data.tokenizer.vocab_size,
        d_model=48,
        num_heads=4,
        num_layers=1,
        d_ff=96,
        dropout=dropout,
        max_positions=80,
    )
    return Transformer(shape)
