"""Label-preserving variants of training examples, one rule per task. Never applied to held-out
data.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Set

from . import grammar
from .tasks import LETTERS, Example

Augment = Callable[[Example, random.Random], Example]


def _rename_letters(example: Example, rng: random.Random) -> Example:
    """Copying and reversing commute with any renaming of the alphabet."""
    table = str.maketrans(LETTERS, "".join(rng.sample(LETTERS, len(LETTERS))))
    source = (example.source or "").translate(table)
    return Example(source, example.target.translate(table), (source,))


def _shuffle_source(example: Example, rng: random.Random) -> Example:
    """Sorting forgets the order of its input."""
    letters = list(example.source or "")
    rng.shuffle(letters)
    source = "".join(letters)
    return Example(source, example.target, (source,))


def _swap_synonyms() -> Augment:
    synonyms = grammar.load("translation_grammar.txt").synonyms()

    def augment(example: Example, rng: random.Random) -> Example:
        words = [
            rng.choice(synonyms.get(word, [word])) for word in (example.source or "").split(" ")
        ]
        return Example(" ".join(words), example.target, example.keys)

    return augment


def _shuffle_sentences(example: Example, rng: random.Random) -> Example:
    """The sentences of a text are drawn independently, so any order is as likely."""
    sentences: list[str] = []
    start = 0
    words = example.target.split(" ")
    for end, word in enumerate(words, start=1):
        if word in (".", "?"):
            sentences.append(" ".join(words[start:end]))
            start = end
    rng.shuffle(sentences)
    return Example(None, " ".join(sentences), example.keys)


def augmentation(task: str) -> Augment:
    if task == "translation":
        return _swap_synonyms()
    return {
        "copy": _rename_letters,
        "reverse": _rename_letters,
        "sort": _shuffle_source,
        "lm": _shuffle_sentences,
    }[task]


def augment_safely(
    augment: Augment, example: Example, rng: random.Random, held_out: Set[str]
) -> Example:
    """A variant that happens to be held-out content would leak it into training: keep the original
    then.
    """
    variant = augment(example, rng)
    return example if any(key in held_out for key in variant.keys) else variant
