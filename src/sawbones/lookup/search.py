"""Search over the pages of all symptoms and faults, and symptoms by what people call them."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sawbones.pages import explain
from sawbones.schema import faults
from sawbones.symptoms import Watched, all_symptoms

MOST_HITS = 8
# Words that say nothing about what is wrong.
FILLERS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by do does for from get gets goes has have how i in is it its "
        "my of on or so that the then there this to too was when while why with you your",
    )
)
TEXTS_COUNT = 0.4
TITLE_COUNTS = 5  # a word of the title weighs as much as so many in the text


@dataclass(frozen=True)
class Hit:
    name: str
    title: str
    excerpt: str
    score: float


def words_of(text: str) -> list[str]:
    """Lower case, without fillers, without the endings of plural and of verbs."""
    found = re.findall(r"[a-z0-9]+", text.lower().replace("doesn't", "not").replace("n't", " not"))
    return [_stem(word) for word in found if word not in FILLERS]


def _stem(word: str) -> str:
    for ending in ("ing", "es", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def matching_symptoms(asked: str) -> list[Watched]:
    """Those that are called so: by the very phrase, else by one whose words are all in what was
    asked. "my loss does not fall at all" is "loss does not fall".
    """
    wanted = set(words_of(asked))
    if not wanted:
        return []
    phrases = {w: [set(words_of(phrase)) for phrase in _phrases(w)] for w in all_symptoms()}
    same = [w for w, every in phrases.items() if wanted in every]
    if same:
        return same
    fits = {
        w: max((len(p) for p in every if p <= wanted), default=0) for w, every in phrases.items()
    }
    best = max(fits.values())
    # One word out of a longer question ("a leak of which kind?") is no match by itself.
    enough = best >= 2 or (best == 1 and len(wanted) <= 2)
    return [w for w, fit in fits.items() if fit == best] if enough else []


def _phrases(watched: Watched) -> tuple[str, ...]:
    return (*watched.called, watched.symptom.replace("-", " "))


@cache
def texts() -> dict[str, str]:
    """Pages that belong to no single fault or symptom, by name."""
    folder = files("sawbones.lookup").joinpath("texts")
    found = sorted(folder.iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".md"): file.read_text(encoding="utf-8") for file in found}


@cache
def _pages() -> dict[str, tuple[str, str]]:
    """Name -> title and text, of every symptom, every fault and every text."""
    pages = {}
    for watched in all_symptoms():
        title, _, text = inspect.cleandoc(watched.page).partition("\n")
        pages[watched.symptom] = (title, " ".join([text, *watched.called]))
    for known in faults().values():
        title, _, text = explain(known.id).partition("\n")[2].strip().partition("\n")
        pages[known.id] = (title.rstrip("."), f"{text} {known.id} {known.cause} {known.signal}")
    for name, text in texts().items():
        title, _, text = text.removeprefix("# ").partition("\n")
        pages[name] = (title, f"{text}\n    {name}")  # found by it, not shown as an excerpt
    return pages


def search(asked: str, most: int = MOST_HITS) -> list[Hit]:
    """Pages by how often they use the words, rare words first; a page that has none is no hit."""
    wanted = list(dict.fromkeys(words_of(asked)))
    counts = {
        name: Counter(words_of(text)) + Counter(words_of(title) * TITLE_COUNTS)
        for name, (title, text) in _pages().items()
    }
    rarity = {
        word: math.log(len(counts) / (1 + sum(word in count for count in counts.values())))
        for word in wanted
    }
    hits = []
    for name, count in counts.items():
        present = [word for word in wanted if count[word]]
        if not present:
            continue
        score = sum(rarity[w] * count[w] / (count[w] + 2) for w in present) * len(present)
        if name in texts():  # they speak of everything; a page about one thing comes first
            score *= TEXTS_COUNT
        title, text = _pages()[name]
        hits.append(Hit(name, title, _excerpt(text, present), score))
    hits.sort(key=lambda hit: (-hit.score, hit.name))
    return hits[:most]


def _excerpt(text: str, wanted: list[str]) -> str:
    """The first sentence of prose that holds most of the words."""
    prose = " ".join(
        line for line in text.splitlines() if line and not line.startswith(("    ", "#"))
    )
    sentences = re.split(r"(?<=[.:;])\s+", prose)
    best = max(sentences, key=lambda sentence: len(set(words_of(sentence)) & set(wanted)))
    return best[:160]
