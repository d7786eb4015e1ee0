"""Metrics over a held-out split: in eval mode, without gradients, without padding; teacher-forced
and free-running.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

from .collation import IGNORE_INDEX, Batch
from .decoding import greedy_decode
from .distributed import Ranks
from .loss import token_loss_sum
from .model import Transformer
from .precision import Precision
from .sampling import TextDataset, eval_batches
from .tokenization import BOS_ID

LM_PREFIX_TOKENS = 8  # a text without a source is continued from this many tokens of its own


@dataclass(frozen=True)
class Metrics:
    """Averages over tokens or sequences of the whole split, not averages of batch averages."""

    loss: float
    token_accuracy: float
    sequence_accuracy: float
    free_token_accuracy: float
    free_sequence_accuracy: float
    num_sequences: int

    def to_json(self) -> dict[str, float]:
        return asdict(self)


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Dropout off inside, the former mode back afterwards, also after an error."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def teacher_forced_counts(model: Transformer, batch: Batch) -> list[float]:
    """[loss sum, correct tokens, tokens, fully correct sequences, sequences]"""
    logits = model(
        batch.source_BS, batch.source_mask_BS, batch.decoder_input_BT, batch.decoder_mask_BT
    )
    real = batch.labels_BT != IGNORE_INDEX
    right = (logits.argmax(-1) == batch.labels_BT) & real
    whole = (right == real).all(1)
    loss = token_loss_sum(logits, batch.labels_BT)
    return [
        float(loss),
        float(right.sum()),
        float(real.sum()),
        float(whole.sum()),
        float(len(batch)),
    ]


def matches(new_BN: Tensor, labels_BT: Tensor) -> list[float]:
    """[correct tokens, tokens, fully correct sequences]: generated against reference up to and
    including its EOS.
    """
    width = max(new_BN.shape[1], labels_BT.shape[1])
    generated = nn.functional.pad(new_BN, (0, width - new_BN.shape[1]), value=IGNORE_INDEX)
    labels = nn.functional.pad(labels_BT, (0, width - labels_BT.shape[1]), value=IGNORE_INDEX)
    real = labels != IGNORE_INDEX
    right = (generated == labels) & real
    # A hypothesis stops at its own EOS, so agreeing on every reference token up to EOS is being
    # equal.
    return [float(right.sum()), float(real.sum()), float((right == real).all(1).sum())]


def free_running_counts(model: Transformer, batch: Batch, max_new_tokens: int) -> list[float]:
    if batch.source_BS is not None:
        new = greedy_decode(model, batch.source_BS, batch.source_mask_BS, max_new_tokens)
        return matches(new, batch.labels_BT)
    # A text shorter than the prefix keeps at least its last token to be predicted.
    shortest = int(batch.decoder_mask_BT.sum(1).min())
    prefix = batch.decoder_input_BT[:, : min(LM_PREFIX_TOKENS, shortest)]
    assert bool((prefix[:, 0] == BOS_ID).all())
    new = greedy_decode(model, None, None, max_new_tokens, prefix)
    return matches(new, batch.labels_BT[:, prefix.shape[1] - 1 :])


def evaluate(
    model: Transformer,
    dataset: TextDataset,
    precision: Precision,
    ranks: Ranks,
    batch_size: int = 250,
    limit: int | None = None,
) -> Metrics:
    """Each rank takes its share of the examples; counts are added over ranks before anything is
    divided.
    """
    counts = [0.0] * 8
    with eval_mode(model), precision.autocast():
        for batch in eval_batches(dataset, batch_size, ranks.rank, ranks.world_size, limit):
            longest = int(batch.decoder_mask_BT.sum(1).max())
            on_device = batch.to(precision.device)
            found = teacher_forced_counts(model, on_device) + free_running_counts(
                model, on_device, longest
            )
            counts = [a + b for a, b in zip(counts, found, strict=True)]
    loss, right, tokens, whole, sequences, free_right, free_tokens, free_whole = ranks.total(
        counts, precision.device
    )
    return Metrics(
        loss=loss / tokens,
        token_accuracy=right / tokens,
        sequence_accuracy=whole / sequences,
        free_token_accuracy=free_right / free_tokens,
        free_sequence_accuracy=free_whole / sequences,
        num_sequences=int(sequences),
    )
