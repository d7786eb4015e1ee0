"""A task's splits, its tokenizer and the data sets made from both."""

from __future__ import annotations

from dataclasses import dataclass

from .augmentation import augmentation
from .config import TrainConfig
from .sampling import BucketSampler, TextDataset
from .tasks import Splits, build_splits, content_hash
from .tokenization import TextTokenizer, train_tokenizer


@dataclass(frozen=True)
class TaskData:
    tokenizer: TextTokenizer
    train: TextDataset
    val: TextDataset
    test: TextDataset
    sha256: str


def fit_tokenizer(splits: Splits, kind: str, bpe_vocab_size: int) -> TextTokenizer:
    texts = [
        text
        for example in splits.train
        for text in (example.source, example.target)
        if text is not None
    ]
    return train_tokenizer(kind, texts, bpe_vocab_size)


def build_data(config: TrainConfig) -> TaskData:
    data = config.data
    splits = build_splits(data)
    tokenizer = fit_tokenizer(splits, data.tokenizer, data.bpe_vocab_size)
    training = (
        splits.train[: config.overfit_batch * config.batch_size]
        if config.overfit_batch
        else splits.train
    )
    held_out = frozenset(
        key for part in (splits.val, splits.test) for example in part for key in example.keys
    )
    train = TextDataset(
        training,
        tokenizer,
        data.max_tokens,
        augment=augmentation(data.task) if data.augment > 0 else None,
        augment_share=data.augment,
        held_out=held_out,
        seed=config.seed,
    )
    val, test = (
        TextDataset(part, tokenizer, data.max_tokens) for part in (splits.val, splits.test)
    )
    return TaskData(tokenizer, train, val, test, content_hash(splits))


def train_sampler(
    config: TrainConfig, dataset: TextDataset, rank: int, world_size: int
) -> BucketSampler:
    return BucketSampler(dataset.lengths(), config.batch_size, config.seed, rank, world_size)
