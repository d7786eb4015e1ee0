"""Windows of one series in time: whether evaluated ones are overlapped by trained ones that reach
further into the future.

The last few steps of an evaluated window are looked up inside the trained windows. Found before the
end of one, that window goes on to what comes after: what the evaluated window is asked for. Whether
a target is such a later step, or a mean, sum or difference of some, is told from the trained
windows, whose own future other trained windows hold. Steps are compared bit by bit, several in a row, so chance plays no part.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from sawbones.schema import samples as kinds

MAX_TRAINED = 3000
MAX_EVALUATED = 300
MAX_VALUES = 1 << 21
_LEAST_TRAINED, _LEAST_EVALUATED, _LEAST_PAIRS = 60, 15, 30
_LEAST_TIME, _MAX_TIME, _MAX_SEGMENT = 6, 512, 8
_DISTINCT = 0.9
_EXACT = 0.9999  # correlation of a target with what it is made of, rounded
_ROWS_PER_WEIGHT, _MAX_WEIGHTS = 3, 512  # of a sum of steps that is fitted

Values = npt.NDArray[np.float32]
Keys = npt.NDArray[np.uint64]


class LaterWindows:
    def __init__(self) -> None:
        self._rows: dict[str, dict[bytes, Values]] = {"train": {}, "eval": {}}
        self._answers: dict[
            bytes, tuple[float, float]
        ] = {}  # the first value of each target, and the last
        self._shape: tuple[int, ...] | None = None
        self._latest: list[bytes] = []  # the rows that the next target belongs to

    def saw(self, phase: str, given: list[torch.Tensor]) -> None:
        kept = self._rows.get(phase)
        self._latest = []
        limit = MAX_TRAINED if phase == "train" else MAX_EVALUATED
        floats = [
            t
            for t in given
            if t.is_floating_point() and t.dim() in (2, 3) and t.device.type == "cpu"
        ]
        if kept is None or len(kept) >= limit or not floats:
            return
        rows = max(floats, key=lambda t: t.numel()).detach()
        shape = tuple(rows.shape[1:])
        self._shape = self._shape or shape
        if (
            shape != self._shape
            or not _LEAST_TIME <= max(shape) <= _MAX_TIME
            or len(kept) * rows[0].numel() > MAX_VALUES
        ):
            return
        plain = rows.to(torch.float32).numpy()
        keys = [row.tobytes() for row in plain]
        known = {} if phase == "train" else self._rows["train"]  # of a score on the training part
        for key, row in zip(keys, plain, strict=True):
            if key not in known:
                kept.setdefault(key, row.copy())
        self._latest = keys if phase == "train" else []

    def asked(self, target: torch.Tensor) -> None:
        if (
            self._latest
            and target.is_floating_point()
            and target.dim() >= 1
            and len(target) == len(self._latest)
        ):
            flat = target.detach().reshape(len(target), -1)
            self._answers.update(
                zip(
                    self._latest,
                    zip(flat[:, 0].tolist(), flat[:, -1].tolist(), strict=True),
                    strict=True,
                )
            )
        self._latest = []

    def record(self) -> kinds.LaterWindows | None:
        trained = self._rows["train"]
        new = [row for key, row in self._rows["eval"].items() if key not in trained]
        if (
            not _LEAST_TRAINED <= len(trained) < MAX_TRAINED
            or len(new) < _LEAST_EVALUATED
            or len(self._answers) < _LEAST_PAIRS
        ):
            return None
        known, answers = (
            np.stack(list(trained.values())),
            [self._answers.get(key, (np.nan, np.nan)) for key in trained],
        )
        for ordered in (
            (0, 1, 2),
            (0, 2, 1),
        ):  # time first, as recurrent layers want it, or channels first
            ours, theirs = (
                r[:, :, None] if r.ndim == 2 else r.transpose(ordered)
                for r in (known, np.stack(new))
            )
            for wanted in np.asarray(answers).T:
                if (
                    ours.shape[1] >= _LEAST_TIME
                    and (found := _compared(ours, theirs, wanted)) is not None
                ):
                    return found
        return None


def _compared(
    trained: Values, evaluated: Values, answers: npt.NDArray[np.float64]
) -> kinds.LaterWindows | None:
    time = trained.shape[1]
    length = min(max(time // 3, 3), _MAX_SEGMENT)
    ours, theirs = _segments(trained, length), _segments(evaluated, length)
    if len(np.unique(ours[:, -1])) < _DISTINCT * len(
        ours
    ):  # a series that repeats itself has no one place in time
        return None
    inside, places = np.unique(
        ours[:, :-1].T.reshape(-1), return_index=True
    )  # of several, the one that reaches furthest
    ahead = _steps_ahead(ours[:, -1], inside, places, trained, length, answers)
    if ahead is None:
        return None
    later = np.isin(theirs[:, -1], inside)
    later_share = float(later.mean())
    return kinds.LaterWindows(len(evaluated), len(trained), later_share, time, ahead)


def _segments(rows: Values, length: int) -> Keys:
    """A number for every `length` steps in a row, equal where all their bits are."""
    random = np.random.default_rng(0).integers(1, 1 << 62, rows.shape[2] + length).astype(
        np.uint64
    ) * np.uint64(2) + np.uint64(1)
    bits = np.ascontiguousarray(rows).view(np.uint32).astype(np.uint64)
    steps = (bits * random[: rows.shape[2]]).sum(2, dtype=np.uint64)
    mixed = steps ^ (steps >> np.uint64(29))
    count = rows.shape[1] - length + 1
    found: Keys = np.sum(
        [mixed[:, i : i + count] * random[rows.shape[2] + i] for i in range(length)],
        axis=0,
        dtype=np.uint64,
    )
    return found


def _steps_ahead(
    ends: Keys,
    inside: Keys,
    places: npt.NDArray[np.int64],
    trained: Values,
    length: int,
    answers: npt.NDArray[np.float64],
) -> int | None:
    """How many steps after the end of its window the target lies, as a column of a later window has
    it; None where none does.
    """
    at = np.minimum(np.searchsorted(inside, ends), len(inside) - 1)
    rows = np.flatnonzero((inside[at] == ends) & np.isfinite(answers))
    start, other = np.divmod(places[at[rows]], len(trained))
    room = trained.shape[1] - (start + length)  # steps that the later window goes on for
    for ahead in range(1, trained.shape[1] - length + 1):
        reach = room >= ahead
        if reach.sum() < _LEAST_PAIRS:
            break
        after = trained[other[reach], start[reach] + length + ahead - 1].astype(np.float64)
        wanted = answers[rows[reach]]
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = after.std(0) * wanted.std()
            alike = np.abs(
                ((after - after.mean(0)) * (wanted - wanted.mean())[:, None]).mean(0) / spread
            )
        if np.any(alike[spread > 1e-9] > _EXACT):
            return ahead
    return _summed_ahead(trained, rows, other, start + length, answers[rows])


def _summed_ahead(
    trained: Values,
    rows: npt.NDArray[np.int64],
    other: npt.NDArray[np.int64],
    begin: npt.NDArray[np.int64],
    answers: npt.NDArray[np.float64],
) -> int | None:
    """The same where the target is a sum of later steps, weighted in any way (a mean, a change
    since the last step), and none of the steps that the window itself holds.
    """
    time, channels = trained.shape[1:]
    steps = time * 3 // 4
    while steps >= 2:
        reach, weighed = begin + steps <= time, (steps + 1) * channels
        is_enough = reach.sum() >= max(_LEAST_PAIRS, _ROWS_PER_WEIGHT * weighed)
        if is_enough and weighed <= _MAX_WEIGHTS:
            places = begin[reach][:, None] + np.arange(steps)
            later = trained[other[reach][:, None], places].reshape(len(places), -1)
            own = trained[rows[reach]][:, -steps:].reshape(len(places), -1)
            wanted = answers[reach]
            weights = _weights(np.hstack([later, own[:, -channels:]]), wanted)
            if weights is not None and _weights(own, wanted) is None:
                sizes = np.abs(weights[: steps * channels]).reshape(steps, channels).max(1)
                return int(np.flatnonzero(sizes > 1e-2 * sizes.max())[-1]) + 1
        steps = steps * 3 // 4
    return None


def _weights(given: Values, wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """Of the sum of columns that is what is wanted, in rows that it was not fitted to; None where
    there is none.
    """
    x = given.astype(np.float64)
    spread = x.std(0)
    x = (x - x.mean(0)) / np.where(spread > 0, spread, 1.0)
    y = wanted - wanted.mean()
    held = np.arange(len(y)) % 3 == 0
    weights = np.linalg.lstsq(x[~held], y[~held], rcond=None)[0]
    told = x[held] @ weights
    if told.std() == 0 or y[held].std() == 0:
        return None
    alike = float(np.corrcoef(told, y[held])[0, 1])
    return np.asarray(weights) if alike > _EXACT else None
