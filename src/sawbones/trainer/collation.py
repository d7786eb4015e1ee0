"""Examples -> batch. Padding is on the right, everywhere; the teacher-forcing shift happens here
and nowhere else.

A batch has a source block (absent for language modelling) and a target block. The encoder-decoder
reads the source with its encoder; the decoder-only model reads both blocks as one sequence. Shapes:
B examples, S source, T target columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .errors import BatchError
from .tokenization import BOS_ID, EOS_ID, PAD_ID

IGNORE_INDEX = -100
PAD_MULTIPLE = 8  # tensor cores and bucketing both like few, even widths


@dataclass(frozen=True)
class Encoded:
    """Token ids of one example, without BOS and EOS."""

    source: tuple[int, ...] | None
    target: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.source or ()) + len(self.target)


@dataclass(frozen=True)
class Batch:
    source_BS: Tensor | None
    source_mask_BS: Tensor | None  # True exactly on non-PAD
    decoder_input_BT: Tensor  # BOS x1 .. xn PAD ..
    decoder_mask_BT: Tensor  # True exactly on non-PAD
    labels_BT: Tensor  # x1 .. xn EOS IGNORE_INDEX ..
    num_targets: int  # labels that count, known on the host so that no device has to be asked

    def __len__(self) -> int:
        return int(self.labels_BT.shape[0])

    def to(self, device: torch.device) -> Batch:
        def move(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        return Batch(
            move(self.source_BS),
            move(self.source_mask_BS),
            self.decoder_input_BT.to(device, non_blocking=True),
            self.decoder_mask_BT.to(device, non_blocking=True),
            self.labels_BT.to(device, non_blocking=True),
            self.num_targets,
        )

    def pin_memory(self) -> Batch:
        """Called by the data loader, which does not know how to pin a record of ours."""
        pinned = [
            None if t is None else t.pin_memory() for t in (self.source_BS, self.source_mask_BS)
        ]
        rest = [
            t.pin_memory() for t in (self.decoder_input_BT, self.decoder_mask_BT, self.labels_BT)
        ]
        return Batch(pinned[0], pinned[1], rest[0], rest[1], rest[2], self.num_targets)


def shift(target: Sequence[int]) -> tuple[list[int], list[int]]:
    """Teacher forcing: column t is fed everything before the token that it has to predict."""
    return [BOS_ID, *target], [*target, EOS_ID]


def pad_right(rows: Sequence[Sequence[int]], fill: int, multiple: int = PAD_MULTIPLE) -> Tensor:
    longest = max(len(row) for row in rows)
    width = -(-longest // multiple) * multiple
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=torch.int64)


def collate(examples: Sequence[Encoded]) -> Batch:
    shifted = [shift(example.target) for example in examples]
    decoder_input = pad_right([inputs for inputs, _ in shifted], PAD_ID)
    labels = pad_right([labels for _, labels in shifted], IGNORE_INDEX)
    source = None
    if examples[0].source is not None:
        source = pad_right([[*(example.source or ()), EOS_ID] for example in examples], PAD_ID)
    return Batch(
        source_BS=source,
        source_mask_BS=None if source is None else source != PAD_ID,
        decoder_input_BT=decoder_input,
        decoder_mask_BT=decoder_input != PAD_ID,
        labels_BT=labels,
        num_targets=int((labels != IGNORE_INDEX).sum()),
    )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise BatchError(f"collated batch: {message}")


def _check_block(name: str, tokens: Tensor, mask: Tensor, vocab_size: int, max_tokens: int) -> None:
    _require(tokens.dtype == torch.int64, f"{name} ids are {tokens.dtype}, not int64")
    _require(mask.dtype == torch.bool, f"{name} mask is {mask.dtype}, not bool")
    _require(
        mask.shape == tokens.shape,
        f"{name} mask has shape {tuple(mask.shape)}, ids {tuple(tokens.shape)}",
    )
    _require(torch.equal(mask, tokens != PAD_ID), f"{name} mask is not True exactly on non-PAD")
    _require(
        bool(mask[:, 0].all()),
        f"{name} has a row without a token in column 0 (empty, or padded on the left)",
    )
    _require(
        not bool((mask[:, 1:] & ~mask[:, :-1]).any()), f"{name} is not padded on the right only"
    )
    low, high = int(tokens.min()), int(tokens.max())
    _require(
        low >= 0 and high < vocab_size,
        f"{name} ids span {low}..{high}, the vocabulary 0..{vocab_size - 1}",
    )
    longest, width = int(mask.sum(1).max()), tokens.shape[1]
    _require(
        longest <= max_tokens, f"{name} has a row of {longest} tokens, the limit is {max_tokens}"
    )
    _require(
        width % PAD_MULTIPLE == 0,
        f"{name} is {width} columns wide, not a multiple of {PAD_MULTIPLE}",
    )
    _require(
        width - longest < PAD_MULTIPLE, f"{name} has {width} columns for at most {longest} tokens"
    )


def check_batch(batch: Batch, vocab_size: int, max_tokens: int) -> None:
    """Every invariant that the model, the loss and the metrics rely on. Runs on every batch, on the
    host.
    """
    if batch.source_BS is not None and batch.source_mask_BS is not None:
        _check_block("source", batch.source_BS, batch.source_mask_BS, vocab_size, max_tokens)
        last = batch.source_BS.gather(1, batch.source_mask_BS.sum(1, keepdim=True) - 1)
        _require(bool((last == EOS_ID).all()), "a source does not end in EOS")
    inputs, mask, labels = batch.decoder_input_BT, batch.decoder_mask_BT, batch.labels_BT
    _check_block("target", inputs, mask, vocab_size, max_tokens)
    _require(bool((inputs[:, 0] == BOS_ID).all()), "a decoder input does not start with BOS")
    _require(
        labels.dtype == torch.int64 and labels.shape == inputs.shape,
        "labels differ from the input in shape or dtype",
    )
    _require(
        torch.equal(labels == IGNORE_INDEX, ~mask), "labels are not ignore_index exactly on PAD"
    )
    _require(bool((labels != PAD_ID).all()), "a label is PAD")
    _require(
        int(labels.max()) < vocab_size,
        f"label {int(labels.max())} is outside the vocabulary of {vocab_size}",
    )
    last = labels.gather(1, mask.sum(1, keepdim=True) - 1)
    _require(bool((last == EOS_ID).all()), "a target does not end in EOS (lost to truncation?)")
    same = torch.equal(labels[:, :-1][mask[:, 1:]], inputs[:, 1:][mask[:, 1:]])
    _require(same, "labels are not the decoder input shifted by one")
    _require(
        batch.num_targets == int(mask.sum()),
        f"num_targets is {batch.num_targets}, the mask has {int(mask.sum())}",
    )
