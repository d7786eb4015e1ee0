"""Near-duplicate texts by MinHash and locality-sensitive hashing, in NumPy over raw bytes, every
pair verified.

A text is the set of its runs of three words (letters and digits, case and punctuation dropped; a
Chinese, Japanese or Korean character is a word of its own). 80 minima in 16 bands of 5: two texts
with Jaccard 0.8 meet in some band with probability 0.998. Whoever meets is compared by the sets
themselves, so no pair is reported on an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Words64 = npt.NDArray[np.uint64]
Words32 = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]

BANDS, PER_BAND = 16, 5
RUN = 3
BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it has an inverse modulo 2**64
# texts of one bucket that a text is compared with: boilerplate fills buckets by the thousand
MOST_IN_BUCKET = 50
BLOCK_BYTES = 1 << 21
WITHIN_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Shingles:
    """The sets of several texts, one after the other: those of text i are
    `values[starts[i]:starts[i + 1]]`, sorted and unique.
    """

    values: Words32
    starts: Places

    @property
    def sizes(self) -> Places:
        return np.diff(self.starts)


@cache
def _tables() -> tuple[Bytes, npt.NDArray[np.bool_]]:
    fold = np.arange(256, dtype=np.uint8)
    fold[ord("A") : ord("Z") + 1] += 32
    letter = np.zeros(256, dtype=np.bool_)
    for first, last in (("0", "9"), ("A", "Z"), ("a", "z")):
        letter[ord(first) : ord(last) + 1] = True
    letter[128:] = True
    return fold, letter


@cache
def _powers(count: int) -> tuple[Words64, Words64]:
    inverse = np.uint64(pow(int(BASE), -1, 1 << 64))
    with np.errstate(over="ignore"):
        up = np.cumprod(np.full(count, BASE, dtype=np.uint64), dtype=np.uint64)
        down = np.cumprod(np.full(count, inverse, dtype=np.uint64), dtype=np.uint64)
    return up, down


def _mixed(x: Words64) -> Words64:
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def _words(text: Bytes, offsets: Places) -> tuple[Words64, Places]:
    """(hash of each word, number of its text). Prefix sums of byte * base**place give the hash of
    any stretch in two reads.
    """
    fold, letter = _tables()
    is_letter = letter[text]
    start = is_letter.copy()
    start[1:] &= ~is_letter[:-1] | (text[1:] >= 0xE3) | ((text[:-1] >= 0x80) & (text[1:] < 0x80))
    first = offsets[:-1][offsets[:-1] < np.minimum(offsets[1:], len(text))]
    start[first] |= is_letter[first]
    edges = np.flatnonzero(start | ~is_letter)
    begins = start[edges]
    s = edges[begins]
    e = np.append(edges, len(text))[1:][begins]
    # A word must not run into the next text.
    owner = np.searchsorted(offsets, s, side="right") - 1
    e = np.minimum(e, offsets[owner + 1])
    up, down = _powers(_rounded(len(text)))
    with np.errstate(over="ignore"):
        sums = np.concatenate(
            (
                [np.uint64(0)],
                np.cumsum((fold[text].astype(np.uint64) + np.uint64(1)) * up[: len(text)]),
            )
        )
        return _mixed((sums[e] - sums[s]) * down[s]), owner


def _rounded(count: int) -> int:
    return 1 << max(12, int(count).bit_length())


def shingles(text: Bytes, offsets: Places) -> Shingles:
    num = len(offsets) - 1
    if not len(text):
        return Shingles(np.zeros(0, np.uint32), np.zeros(num + 1, np.int64))
    words, owner = _words(text, offsets)
    counts = np.bincount(owner, minlength=num)
    with np.errstate(over="ignore"):
        runs, of = words, owner
        for step in range(1, RUN):
            runs = runs[: len(words) - step] * np.uint64(0x100000001B3) + words[step:]
        inside = (
            owner[: len(runs)] == owner[RUN - 1 :] if len(words) >= RUN else np.zeros(0, np.bool_)
        )
        runs, of = runs[inside], owner[: len(inside)][inside]
        short = (counts > 0) & (counts < RUN)
        if short.any():  # a text of one or two words is one run
            whole = np.zeros(num, dtype=np.uint64)
            np.add.at(whole, owner, words)
            runs, of = (
                np.concatenate([runs, whole[short]]),
                np.concatenate([of, np.flatnonzero(short)]),
            )
    # One sort orders by text and then by hash, and brings equal ones together.
    packed = np.sort((of.astype(np.uint64) << np.uint64(32)) | (_mixed(runs) >> np.uint64(32)))
    packed = packed[np.concatenate(([True], packed[1:] != packed[:-1]))] if len(packed) else packed
    sizes = np.bincount((packed >> np.uint64(32)).astype(np.int64), minlength=num)
    return Shingles(packed.astype(np.uint32), np.concatenate(([0], np.cumsum(sizes))))


@cache
def _permutations() -> tuple[Words32, Words32]:
    rng = np.random.default_rng(20)
    count = BANDS * PER_BAND
    return rng.integers(0, 1 << 32, count, dtype=np.uint32), rng.integers(
        0, 1 << 32, count, dtype=np.uint32
    ) | np.uint32(1)


def band_keys(sets: Shingles) -> Words64:
    """(texts, bands): equal keys in one band make two texts candidates. Texts without a word get
    keys of their own.
    """
    num = len(sets.starts) - 1
    keys = np.empty((num, BANDS), dtype=np.uint64)
    filled = np.flatnonzero(sets.sizes > 0)
    masks, factors = _permutations()
    starts = sets.starts[:-1][filled]
    with np.errstate(over="ignore"):
        for band in range(BANDS):
            key = np.full(len(filled), band, dtype=np.uint64)
            for k in range(band * PER_BAND, (band + 1) * PER_BAND):
                if len(filled):
                    minima = np.minimum.reduceat((sets.values ^ masks[k]) * factors[k], starts)
                    key = _mixed(key * np.uint64(0x100000001B3) + minima)
            keys[filled, band] = key
    empty = np.flatnonzero(sets.sizes == 0)
    keys[empty] = np.arange(len(empty), dtype=np.uint64)[:, None] << np.uint64(8)
    return keys


def jaccard(a: Shingles, b: Shingles, left: Places, right: Places) -> npt.NDArray[np.float64]:
    """Exact similarity of the pairs (left[i] of a, right[i] of b)."""
    found = np.zeros(len(left))
    step = 20_000
    for first in range(0, len(left), step):
        some = slice(first, first + step)
        one, two = _gathered(a, left[some]), _gathered(b, right[some])
        both = np.sort(np.concatenate([one, two]))
        twice = both[1:][both[1:] == both[:-1]]
        num = len(left[some])
        shared = np.bincount((twice >> np.uint64(32)).astype(np.int64), minlength=num)
        union = a.sizes[left[some]] + b.sizes[right[some]] - shared
        found[some] = shared / np.maximum(1, union)
    return found


def _gathered(sets: Shingles, which: Places) -> Any:
    sizes = sets.sizes[which]
    pair = np.repeat(np.arange(len(which), dtype=np.uint64), sizes)
    inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    values = sets.values[np.repeat(sets.starts[:-1][which], sizes) + inside]
    return (pair << np.uint64(32)) | values


class TextIndex:
    """The texts of the smaller split, ready to be met by those of the other, which only pass by."""

    def __init__(self, sets: Shingles) -> None:
        self.sets = sets
        self._keys = keys = band_keys(sets)
        self._order = [np.argsort(keys[:, band], kind="stable") for band in range(BANDS)]
        self._sorted = [keys[order, band] for band, order in enumerate(self._order)]

    def candidates(self, keys: Words64) -> tuple[Places, Places]:
        """(passing text, indexed text) of every pair that meets in a band, each once."""
        met = []
        for band in range(BANDS):
            low = np.searchsorted(self._sorted[band], keys[:, band], side="left")
            high = np.searchsorted(self._sorted[band], keys[:, band], side="right")
            counts = np.minimum(high - low, MOST_IN_BUCKET)
            passing = np.repeat(np.arange(len(keys)), counts)
            inside = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
            met.append(
                (passing.astype(np.uint64) << np.uint64(32))
                | self._order[band][np.repeat(low, counts) + inside].astype(np.uint64)
            )
        pairs = np.unique(np.concatenate(met))
        return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(
            np.int64
        )

    def matches(
        self, sets: Shingles, least: float
    ) -> tuple[Places, Places, npt.NDArray[np.float64]]:
        """(passing, indexed, Jaccard) of every verified pair."""
        passing, indexed = self.candidates(band_keys(sets))
        return self._verified(sets, passing, indexed, least)

    def within(self, least: float) -> tuple[Places, Places, npt.NDArray[np.float64]]:
        """(later, earlier, Jaccard) of every verified pair among the indexed texts themselves."""
        met = []
        for first in range(0, len(self._keys), WITHIN_ROWS):
            later, earlier = self.candidates(self._keys[first : first + WITHIN_ROWS])
            later = later + first
            met.append(np.stack([later, earlier])[:, earlier < later])
        later, earlier = np.concatenate(met, axis=1) if met else np.zeros((2, 0), np.int64)
        return self._verified(self.sets, later, earlier, least)

    def _verified(
        self, sets: Shingles, passing: Places, indexed: Places, least: float
    ) -> tuple[Places, Places, npt.NDArray[np.float64]]:
        if len(passing):
            a, b = sets.sizes[passing], self.sets.sizes[indexed]
            possible = (np.minimum(a, b) >= least * np.maximum(a, b)) & (a > 0)
            passing, indexed = passing[possible], indexed[possible]
        similar = jaccard(sets, self.sets, passing, indexed)
        kept = similar >= least
        return passing[kept], indexed[kept], similar[kept]


def joined(parts: list[Shingles]) -> Shingles:
    values = np.concatenate([p.values for p in parts]) if parts else np.zeros(0, np.uint32)
    sizes = np.concatenate([p.sizes for p in parts]) if parts else np.zeros(0, np.int64)
    return Shingles(values, np.concatenate(([0], np.cumsum(sizes))).astype(np.int64))


def blocks(array: Any) -> Iterator[tuple[int, Bytes, Places]]:
    """(number of the first text, bytes, offsets) of an Arrow string array, in blocks that stay in
    the processor's cache.
    """
    import pyarrow as pa

    array = array.fill_null("").cast(pa.large_string())
    _, places, data = array.buffers()
    if data is None or not len(array):
        yield 0, np.zeros(0, np.uint8), np.zeros(len(array) + 1, np.int64)
        return
    offsets = np.frombuffer(places, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    text = np.frombuffer(data, dtype=np.uint8)
    first = 0
    while first < len(array):
        last = max(
            first + 1, int(np.searchsorted(offsets, offsets[first] + BLOCK_BYTES, side="right")) - 1
        )
        last = min(last, len(array))
        yield (
            first,
            text[offsets[first] : offsets[last]],
            offsets[first : last + 1] - offsets[first],
        )
        first = last
