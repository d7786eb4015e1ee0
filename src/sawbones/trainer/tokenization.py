"""Text <-> ids through Hugging Face `tokenizers`: characters, or byte pairs learnt from the
training split.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from .errors import CheckpointError, ConfigError, PackageMissing

# Rust threads would fork badly into data workers, and the texts here are short.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

try:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
except ImportError as error:
    raise PackageMissing(
        "the trainer needs the tokenizers library. Install it: pip install 'sawbones[train]'"
    ) from error

PAD, BOS, EOS, UNK = "<pad>", "<bos>", "<eos>", "<unk>"
SPECIALS = (PAD, BOS, EOS, UNK)
PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)


class TextTokenizer:
    """A trained tokenizer with the four special ids at fixed, distinct places. Adds no special
    token by itself.
    """

    def __init__(self, inner: Tokenizer) -> None:
        self.inner = inner
        ids = [inner.token_to_id(token) for token in SPECIALS]
        if ids != [PAD_ID, BOS_ID, EOS_ID, UNK_ID]:
            raise ConfigError(
                f"special tokens {SPECIALS} must have the ids 0 to 3; this tokenizer gives {ids}"
            )

    @property
    def vocab_size(self) -> int:
        return int(self.inner.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.inner.encode(text, add_special_tokens=False).ids
        return ids

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        return [e.ids for e in self.inner.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Iterable[int]) -> str:
        """Text up to the first EOS; PAD and BOS carry no text."""
        kept = []
        for token in ids:
            if token == EOS_ID:
                break
            if token not in (PAD_ID, BOS_ID):
                kept.append(int(token))
        text: str = self.inner.decode(kept, skip_special_tokens=False)
        return text

    def to_json(self) -> str:
        text: str = self.inner.to_str()
        return text

    @classmethod
    def from_json(cls, text: str) -> TextTokenizer:
        return cls(Tokenizer.from_str(text))


def truncate(ids: Sequence[int], max_tokens: int) -> list[int]:
    """Cut the text so that the EOS added later still fits: a model that never sees EOS never
    stops.
    """
    return list(ids[: max_tokens - 1])


def train_tokenizer(kind: str, texts: Iterable[str], bpe_vocab_size: int = 512) -> TextTokenizer:
    """Fit on the training split only: statistics of held-out text are a leak."""
    if kind == "char":
        return _character_tokenizer(texts)
    if kind == "bpe":
        return _bpe_tokenizer(texts, bpe_vocab_size)
    raise ConfigError(f"no tokenizer {kind!r}; there are char and bpe")


def _character_tokenizer(texts: Iterable[str]) -> TextTokenizer:
    characters = sorted(set().union(*texts))
    vocabulary = {token: i for i, token in enumerate((*SPECIALS, *characters))}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=UNK))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    inner.decoder = decoders.Fuse()
    return TextTokenizer(inner)


def _bpe_tokenizer(texts: Iterable[str], vocab_size: int) -> TextTokenizer:
    inner = Tokenizer(models.BPE(unk_token=UNK))
    # Byte level keeps every space, so that decode(encode(text)) == text without rules for
    # punctuation.
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=list(SPECIALS), show_progress=False
    )
    inner.train_from_iterator(texts, trainer)
    return TextTokenizer(inner)


def check_same(stored: str, current: str) -> None:
    """The ids of a checkpoint mean something only under the tokenizer it was trained with."""
    if stored != current:
        raise CheckpointError(
            "the checkpoint's tokenizer differs from the one this data gives, so its ids "
            "mean other text; "
            "resume with the data settings the checkpoint was trained with"
        )
