"""Windows of one series in time: whether evaluated ones lie between trained ones that overlap them.

The first and the last few steps of an evaluated window are looked up inside the windows that were
trained on before it. Last steps found before the end of one: that window goes on to what comes
after, which may be what the evaluated window is asked for. Whether a target is such a later step,
or a mean, sum or difference of some, is told from the trained windows, whose own future other
trained windows hold. Where trained windows go on at either side, windows were dealt out: those of
parts that are cut at a moment, whichever is evaluated, overlap at one side alone. Steps are
compared bit by bit, several in a row; how often chance does that is told from runs at the same
place of two windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sawbones.schema import samples as kinds

MAX_VALUES = 1 << 21  # of the windows of one phase that are kept
MAX_SEEN = 1 << 26  # values of trained windows that are compared with earlier ones
_PER_WINDOW = 512  # values that one more window counts for
_LEAST_TRAINED, _LEAST_EVALUATED, _LEAST_PAIRS = 60, 15, 30
_LEAST_TIME, _MAX_TIME, _MAX_SEGMENT = 6, 512, 8
_DISTINCT = 0.9
_SHARED = 4  # an overlap is at least one part in so many of a window
_TOGETHER = 8  # evaluated windows, as they come: those of one part stand together
_EXACT = 0.9999  # correlation of a target with what it is made of, rounded
_ROWS_PER_WEIGHT, _MAX_WEIGHTS = 3, 512  # of a sum of steps that is fitted

Values = npt.NDArray[np.float32]
Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


class LaterWindows:
    def __init__(self) -> None:
        # window -> how many were trained on when it came up the last time
        self._rows: dict[str, dict[bytes, int]] = {"train": {}, "eval": {}}
        self._trained: set[int] = set()  # hashes, of those too that are not kept
        self._seen = 0  # values of trained windows
        self._has_new = False  # among the last of them
        self._answers: dict[
            bytes, tuple[float, float]
        ] = {}  # the first value of each target, and the last
        self._shape: tuple[int, ...] | None = None
        self._latest: list[bytes] = []  # the rows that the next target belongs to

    def saw(self, phase: str, given: list[torch.Tensor]) -> None:
        kept = self._rows.get(phase)
        self._latest = []
        floats = [
            _without_ones(t)
            for t in given
            if t.is_floating_point() and t.device.type == "cpu" and t.numel() and t.dim() > 1
        ]
        rows = max(floats, key=lambda t: t.numel(), default=None)
        if kept is None or rows is None or self._seen > MAX_SEEN:
            return
        shape = tuple(rows.shape[1:])
        size = rows[0].numel()
        self._shape = self._shape or shape
        if (
            shape != self._shape
            or len(shape) not in (1, 2)
            or not _LEAST_TIME <= max(shape) <= _MAX_TIME
            or size * _LEAST_TRAINED > MAX_VALUES
        ):
            return
        keys = [row.tobytes() for row in rows.to(torch.float32).numpy()]
        if phase == "train":
            self._latest = keys
            known = len(self._trained)
            self._trained.update(map(hash, keys))
            self._has_new = len(self._trained) > known
            self._seen += len(keys) * (size + _PER_WINDOW)
        has_room = (len(kept) + len(keys)) * size <= MAX_VALUES
        for key in keys:
            if has_room or key in kept:
                kept[key] = len(self._rows["train"])

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
        # what is trained on as well belongs to a score on the training part
        new = {key: n for key, n in self._rows["eval"].items() if hash(key) not in self._trained}
        if (
            self._shape is None
            or len(trained) < _LEAST_TRAINED
            or len(new) < _LEAST_EVALUATED
            or (self._seen > MAX_SEEN and self._has_new)
        ):
            return None
        known, held = (
            np.frombuffer(b"".join(rows), np.float32).reshape(len(rows), *self._shape)
            for rows in (trained, new)
        )
        before = np.array(list(new.values()), np.int64)
        answers = np.array([self._answers.get(key, (np.nan, np.nan)) for key in trained])
        found = [
            seen
            # time first, as recurrent layers want it, or channels first
            for axis in range(1, known.ndim)
            if (seen := _compared(known.swapaxes(1, axis), held.swapaxes(1, axis), before, answers))
        ]
        return max(found, key=lambda seen: (seen.ahead > 0, seen.between), default=None)


def _without_ones(given: torch.Tensor) -> torch.Tensor:
    """Windows stand in axes of their own in pictures of one channel, or of one row."""
    plain = given.detach()
    return plain.reshape(plain.shape[0], *(n for n in plain.shape[1:] if n > 1))


def _compared(
    trained: Values, evaluated: Values, before: Numbers, answers: npt.NDArray[np.float64]
) -> kinds.LaterWindows | None:
    """`before`: how many of the trained windows came before each evaluated one."""
    trained, evaluated = (r[:, :, None] if r.ndim == 2 else r for r in (trained, evaluated))
    time = trained.shape[1]
    if time < _LEAST_TIME:
        return None
    length = min(max(time // 3, 3), _MAX_SEGMENT)
    ours, theirs = _segments(trained, length), _segments(evaluated, length)
    if len(np.unique(ours[:, -1])) < _DISTINCT * len(
        ours
    ):  # a series that repeats itself has no one place in time
        return None
    later = _is_met(theirs[:, -1], ours[:, :-1], before)
    inside, places = np.unique(
        ours[:, :-1].T.reshape(-1), return_index=True
    )  # of several, the one that reaches furthest
    found = (
        _steps_ahead(ours[:, -1], inside, places, trained, length, wanted) for wanted in answers.T
    )
    ahead = next((steps for steps in found if steps is not None), 0)
    beside = _beside(trained, evaluated, before)
    return kinds.LaterWindows(
        len(evaluated), len(trained), float(later.mean()), time, ahead, **beside
    )


def dealt_windows(trained: Values, evaluated: Values) -> kinds.LaterWindows | None:
    """Windows as rows, steps first or last: how many evaluated ones lie between trained ones."""
    if len(trained) < _LEAST_TRAINED or len(evaluated) < _LEAST_EVALUATED:
        return None
    before = np.full(len(evaluated), len(trained), np.int64)
    found = []
    for axis in range(1, trained.ndim):
        known, held = (rows.swapaxes(1, axis) for rows in (trained, evaluated))
        known, held = (r[:, :, None] if r.ndim == 2 else r for r in (known, held))
        if known.shape[1] >= _LEAST_TIME:
            counts = len(held), len(known), 0.0, known.shape[1], 0
            found.append(kinds.LaterWindows(*counts, **_beside(known, held, before)))
    return max(found, key=lambda seen: seen.between, default=None)


def _beside(trained: Values, evaluated: Values, before: Numbers) -> dict[str, Any]:
    """Which evaluated windows trained ones overlap on both sides, and by how much of chance."""
    time = trained.shape[1]
    length = max(min(max(time // 3, 3), _MAX_SEGMENT), time // _SHARED)
    ours, theirs = _segments(trained, length), _segments(evaluated, length)
    between = _is_met(theirs[:, 0], ours[:, 1:], before)
    between &= _is_met(theirs[:, -1], ours[:, :-1], before)
    at_one_place = float(np.mean(np.isin(theirs[:, -1], ours[:, -1])))
    stretches = np.array_split(between, max(len(between) // _TOGETHER, 1))
    return {
        "between": int(between.sum()),
        "by_chance": 1 - (1 - at_one_place) ** (time - length),
        "apart": sum(len(s) for s in stretches if not s.any()) / len(between),
    }


def _is_met(wanted: Keys, inside: Keys, before: Numbers) -> npt.NDArray[np.bool_]:
    """Which of these are in a trained window that came before: the first that has it counts."""
    keys, first = np.unique(inside.reshape(-1), return_index=True)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    is_before = first[at] // inside.shape[1] < before
    return np.asarray((keys[at] == wanted) & is_before)


def _segments(rows: Values, length: int) -> Keys:
    """A number for every `length` steps in a row, equal where all their bits are: sums of powers,
    as differences of running sums, modulo 2 ** 64.
    """
    count, time, channels = rows.shape
    random = np.random.default_rng(0).integers(1, 1 << 62, channels + 1).astype(np.uint64)
    random = random * np.uint64(2) + np.uint64(1)
    bits = np.ascontiguousarray(rows).view(np.uint32).astype(np.uint64)
    steps = (bits * random[:channels]).sum(2, dtype=np.uint64)
    mixed = steps ^ (steps >> np.uint64(29))
    powers = np.cumprod(np.full(time, random[-1], np.uint64))
    sums = np.zeros((count, time + 1), np.uint64)
    np.cumsum(mixed * powers, axis=1, out=sums[:, 1:])
    # all brought to the power of the last one, so that the place does not count
    return np.asarray((sums[:, length:] - sums[:, :-length]) * powers[time - length :: -1])


def _steps_ahead(
    ends: Keys,
    inside: Keys,
    places: Numbers,
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
    rows: Numbers,
    other: Numbers,
    begin: Numbers,
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
