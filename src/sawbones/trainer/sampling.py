"""Which examples form a batch: shuffled anew every epoch, of similar length, the same for any
number of ranks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

from .augmentation import Augment, augment_safely
from .collation import Batch, Encoded, check_batch, collate
from .determinism import derive_seed, seed_worker
from .errors import ConfigError
from .tasks import Example
from .tokenization import TextTokenizer, truncate

POOL_BATCHES = (
    20  # bucketing sorts within pools of this many batches, so that an epoch stays well mixed
)


class TextDataset(Dataset[Encoded]):
    """Examples as ids. An augmented variant depends on (seed, epoch, index) alone, so workers and
    resumes agree.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        tokenizer: TextTokenizer,
        max_tokens: int,
        augment: Augment | None = None,
        augment_share: float = 0.0,
        held_out: frozenset[str] = frozenset(),
        seed: int = 0,
    ) -> None:
        self.examples = examples
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.augment = augment
        self.augment_share = augment_share
        self.held_out = held_out
        self.seed = seed
        self.epoch = 0
        sources: list[list[int] | None] = [None] * len(examples)
        if examples and examples[0].source is not None:
            sources = [*tokenizer.encode_many([e.source or "" for e in examples])]
        targets = tokenizer.encode_many([e.target for e in examples])
        self.encoded = [self._encoded(s, t) for s, t in zip(sources, targets, strict=True)]

    def _encoded(self, source: list[int] | None, target: list[int]) -> Encoded:
        cut = None if source is None else tuple(truncate(source, self.max_tokens))
        return Encoded(cut, tuple(truncate(target, self.max_tokens)))

    def __len__(self) -> int:
        return len(self.examples)

    def lengths(self) -> list[int]:
        return [example.length for example in self.encoded]

    def __getitem__(self, index: int) -> Encoded:
        if self.augment is None or self.augment_share <= 0:
            return self.encoded[index]
        rng = random.Random(derive_seed(self.seed, "augment", self.epoch, index))
        if rng.random() >= self.augment_share:
            return self.encoded[index]
        variant = augment_safely(self.augment, self.examples[index], rng, self.held_out)
        source = None if variant.source is None else self.tokenizer.encode(variant.source)
        return self._encoded(source, self.tokenizer.encode(variant.target))


class BucketSampler(DistributedSampler[list[int]]):
    """Batches of indices. The order comes from (seed, epoch) alone; each rank takes every
    world_size-th row of a batch.

    Sharding rows of one global batch, not the data set, is what makes two ranks take the same steps
    as one. The last, partial batch of an epoch is left out; the next epoch's shuffle brings its
    examples back.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        shuffle: bool = True,
    ) -> None:
        super().__init__(
            _Sized(len(lengths)), num_replicas=world_size, rank=rank, shuffle=shuffle, seed=seed
        )
        if batch_size % world_size:
            raise ConfigError(f"batch-size {batch_size} does not split over {world_size} ranks")
        if len(lengths) < batch_size:
            raise ConfigError(
                f"batch-size {batch_size} is larger than the {len(lengths)} training examples"
            )
        self.lengths_of = list(lengths)
        self.batch_size = batch_size
        self.cursor = (
            0  # batches of this epoch that the loop has consumed; a resumed epoch starts there
        )

    def __len__(self) -> int:
        return len(self.lengths_of) // self.batch_size

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        self.cursor = 0

    def global_batches(self) -> list[list[int]]:
        order = list(range(len(self.lengths_of)))
        rng = random.Random(derive_seed(self.seed, "sampler", self.epoch))
        if self.shuffle:
            rng.shuffle(order)
        pool = self.batch_size * POOL_BATCHES
        batches = []
        for start in range(0, len(order), pool):
            similar = sorted(order[start : start + pool], key=self.lengths_of.__getitem__)
            batches += [
                similar[i : i + self.batch_size] for i in range(0, len(similar), self.batch_size)
            ]
        batches = [batch for batch in batches if len(batch) == self.batch_size]
        if self.shuffle:
            rng.shuffle(batches)
        return batches

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.global_batches()[self.cursor :]:
            yield batch[self.rank :: self.num_replicas]


class _Sized(Dataset[list[int]]):
    """What DistributedSampler asks of a data set: its size."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> list[int]:
        return [index]


def checked_collate(examples: Sequence[Encoded], vocab_size: int, max_tokens: int) -> Batch:
    batch = collate(examples)
    check_batch(batch, vocab_size, max_tokens)
    return batch


def train_loader(
    dataset: TextDataset, sampler: BucketSampler, workers: int, pin_memory: bool
) -> DataLoader[Encoded]:
    """A loader for the sampler's current epoch, from its cursor on."""
    # The loader draws its workers' seeds from this generator; without one it would draw from, and
    # move, torch's own.
    generator = torch.Generator().manual_seed(
        derive_seed(dataset.seed, "workers", sampler.epoch, sampler.rank)
    )
    return DataLoader(
        dataset,
        batch_sampler=sampler,
        collate_fn=partial(
            checked_collate, vocab_size=dataset.tokenizer.vocab_size, max_tokens=dataset.max_tokens
        ),
        num_workers=workers,
        worker_init_fn=seed_worker,
        generator=generator,
        pin_memory=pin_memory,
    )


class BatchStream:
    """An endless stream of batches that can say where it is and start again from there."""

    def __init__(
        self,
        dataset: TextDataset,
        sampler: BucketSampler,
        workers: int = 0,
        pin_memory: bool = False,
    ) -> None:
        self.dataset = dataset
        self.sampler = sampler
        self.workers = workers
        self.pin_memory = pin_memory
        self._batches: Iterator[Any] | None = None

    def __iter__(self) -> BatchStream:
        return self

    def __next__(self) -> Batch:
        if self._batches is None:
            self.dataset.epoch = self.sampler.epoch
            self._batches = iter(
                train_loader(self.dataset, self.sampler, self.workers, self.pin_memory)
            )
        batch: Batch | None = next(self._batches, None)
        if batch is None:
            self.sampler.set_epoch(self.sampler.epoch + 1)
            self._batches = None
            return self.__next__()
        # Counted here and not in the sampler: workers fetch ahead of what the loop has really used.
        self.sampler.cursor += 1
        return batch

    def position(self) -> dict[str, int]:
        return {"epoch": self.sampler.epoch, "batch": self.sampler.cursor}

    def seek(self, position: dict[str, int]) -> None:
        self.sampler.set_epoch(position["epoch"])
        self.sampler.cursor = position["batch"]
        self._batches = None


def eval_batches(
    dataset: TextDataset,
    batch_size: int,
    rank: int = 0,
    world_size: int = 1,
    limit: int | None = None,
) -> Iterator[Batch]:
    """Held-out batches in a fixed order, every example once over all ranks."""
    indices = sorted(range(len(dataset))[:limit], key=lambda i: dataset.encoded[i].length)[
        rank::world_size
    ]
    for start in range(0, len(indices), batch_size):
        rows = [dataset.encoded[i] for i in indices[start : start + batch_size]]
        yield checked_collate(rows, dataset.tokenizer.vocab_size, dataset.max_tokens)
