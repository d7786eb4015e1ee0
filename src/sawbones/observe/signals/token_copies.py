"""Whether rows of tokens that are evaluated were trained on word for word, although they could
hardly have come about twice.

Short rows, and rows that follow a rule, coincide by chance. A row is taken for a copy when what the
trained rows know about the next token from the two before it leaves so many forms of that length
that meeting one of them again is unlikely. That knowledge is overestimated from few rows, so that
too few rows are taken for copies and not too many. Rows made from one template have neighbours that
differ in a word or two; copies of records have none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sawbones.schema import samples as kinds

MAX_TRAINED = 4000
MAX_EVALUATED = 400
MAX_WIDTH = 256
_MIN_ROWS = 100
_BY_CHANCE = 0.01  # expected number of equal trained rows above which a row says nothing
_BESIDE = 1 / 3  # share of its tokens in which a row may differ from one of the same template

Ids = npt.NDArray[np.int64]


class TokenCopies:
    def __init__(self) -> None:
        self._rows: dict[str, dict[bytes, Ids]] = {"train": {}, "eval": {}}
        self._left_out = False

    def saw(self, phase: str, rows: Ids, ends: npt.NDArray[np.bool_]) -> None:
        """Rows of tokens went into the model; the ends of a row that are padding are not part of
        it.
        """
        kept = self._rows.get(phase)
        limit = MAX_TRAINED if phase == "train" else MAX_EVALUATED
        if kept is None or rows.shape[1] > MAX_WIDTH:
            return
        if len(kept) >= limit:
            self._left_out = self._left_out or phase == "train"
            return
        for row, end in zip(rows, ends, strict=True):
            plain = row[~end].astype(np.int32)
            kept.setdefault(plain.tobytes(), plain.astype(np.int64))

    def record(self) -> kinds.TokenCopies | None:
        trained, evaluated = self._rows["train"], list(self._rows["eval"].items())[:MAX_EVALUATED]
        if self._left_out or len(trained) < _MIN_ROWS or len(evaluated) < 20:
            return None
        bits = _bits_per_token(list(trained.values()))
        shared = [row for key, row in evaluated if key in trained]
        rare = [
            row
            for row in shared
            if len(trained) * 2.0 ** (-bits * max(len(row) - 2, 0)) < _BY_CHANCE
        ]
        if not rare:
            return None
        beside = np.mean([_has_neighbour(row, trained) for row in rare[:100]])
        return kinds.TokenCopies(len(evaluated), len(shared), len(rare), float(beside))


def _bits_per_token(rows: list[Ids]) -> float:
    """Entropy of a token given the two before it, as counted: with few rows it comes out too
    low.
    """
    parts = [np.lib.stride_tricks.sliding_window_view(row, 3) for row in rows if len(row) >= 3]
    if not parts:
        return 0.0
    triples = np.concatenate(parts)
    _, whole = np.unique(triples, axis=0, return_counts=True)
    _, before = np.unique(triples[:, :2], axis=0, return_counts=True)
    total = len(triples)
    return float((before * np.log2(before)).sum() - (whole * np.log2(whole)).sum()) / total


def _has_neighbour(row: Ids, trained: dict[bytes, Ids]) -> bool:
    """Whether a trained row of the same length differs from this one in few tokens, but in some."""
    alike = [other for other in trained.values() if len(other) == len(row)]
    differing = (np.stack(alike) != row).sum(1) if alike else np.zeros(0)
    return bool(np.any((differing > 0) & (differing <= _BESIDE * len(row))))
