"""Rows of a model that are stretches of a longer series: windows, or a row with its lags. Where each
of them ends in the series, how far ahead of that its answer lies, and the line at which the series
is there and nothing has been prepared from it yet.

The parts of such a split need not stand in one container of rows: they have the series in common.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sawbones.observe.sources.answers import follows_answer, is_answer
from sawbones.observe.sources.containers import LEAST_ROWS, Hashes, Numbers, Places, hash_rows
from sawbones.observe.sources.placing import RECOGNISED, is_measured, is_scaled

if TYPE_CHECKING:
    from sawbones.observe.sources.log import Version
    from sawbones.observe.sources.placing import Placing

LEAST_SERIES = 100  # rows
MOST_AHEAD = 64  # rows behind the last one of a window that an answer is looked for
_OF_A_WINDOW = 0.5  # share of its values that must be found in the series
_TRIED = 64  # windows that are looked up before all of them are
_SERIES, _LARGEST = 24, 1 << 19  # that are tried, and values of one: a second for all of them
_MADE_FROM = 16  # earlier forms of the same windows that are looked at
_ASKED = 512  # answers that are compared
_COLUMNS = 16
_FOLLOWS = 0.25  # correlation: the upper 2 % of a normal quantity have one of 0.34 with it
_STEPS, _STEP_ROUNDING = 8, 1e-2  # compared; a step is the difference of two rounded values
_PARTS = 8  # of a series, each a stretch of it
_OF_A_CLASS = 10  # answers: fewer may be cut off from the others by accident

Seen = Mapping[str, Mapping[int, float | None]]
Targets = npt.NDArray[np.float32]


@dataclass(frozen=True)
class WindowRows:
    """Windows of both parts in one series."""

    start: Version  # the series, as it is before anything is prepared from it
    names: tuple[str, ...]  # of what holds rows of the series there
    rows: tuple[int, ...]  # of the series: all from one on
    early: tuple[int, ...]  # hashes of training rows; none where one reaches into these rows
    row_of: Mapping[int, int]  # hash of a row that is only evaluated -> its last row in the series
    ahead: int  # rows from the end of a window to its answer; 0 where that is not known to be later
    holders: frozenset[str]  # variables of windows that reach into the changed rows


class Lookup:
    """Values of a series that occur in one row alone -> that row."""

    def __init__(self, numbers: Numbers, places: Places | None = None) -> None:
        """`places`: of the rows in the series, where these are stretches of it."""
        flat = numbers.reshape(-1)
        rows = np.repeat(np.arange(len(numbers)) if places is None else places, numbers.shape[1])
        order = np.argsort(flat, kind="stable")
        values, first = np.unique(flat[order], return_index=True)
        ends = np.append(first[1:], len(order)) if len(first) else first
        if places is None:
            alone = ends - first == 1
        else:  # parts may have rows in common
            lowest, highest = (f.reduceat(rows[order], first) for f in (np.minimum, np.maximum))
            alone = lowest == highest
        alone &= np.isfinite(values)
        self._values = values[alone]
        self._rows = rows[order][first[alone]]

    def ends(self, windows: Numbers) -> Places:
        """The last row of each window; -1 for what is no stretch of the series."""
        if not len(self._values):
            return np.full(len(windows), -1)
        at = np.minimum(np.searchsorted(self._values, windows), len(self._values) - 1)
        met = self._values[at] == windows
        rows = self._rows[at]
        last = np.where(met, rows, -1).max(1)
        first = np.where(met, rows, np.iinfo(np.int64).max).min(1)
        spanned = last - first
        is_window = met.mean(1) >= _OF_A_WINDOW
        is_window &= (spanned >= 1) & (spanned < windows.shape[1])
        return np.where(is_window, last, -1)


def find_windows(
    versions: Sequence[Version],
    placing: Placing,
    seen: Seen,
    width: int,
    given: Sequence[Numbers],
    first: Collection[int] = (),
) -> WindowRows | None:
    """None where the rows of both phases are no stretches of one series, or where nothing says at
    which line the series is there as it came. `first`: hashes of rows of the first evaluation.
    """
    held = [
        v
        for v, x in enumerate(versions)
        if x.rows.numbers.shape[1] == width and not x.rows.is_text and _is_met(x.rows.hashes, seen)
    ]
    if width < 2 or not held:
        return None
    for series in _series(versions, placing, width, held):
        lookup = Lookup(versions[series].rows.numbers)
        end_of = _ends(versions, placing, held, given, lookup)
        if all(_share(end_of, seen[phase]) >= RECOGNISED for phase in ("train", "eval")):
            return _planned(versions, placing, seen, series, end_of, held, first)
    for series in _series(versions, placing, width, held):
        parts = _parts_of(versions, series, held)
        if not parts:
            continue
        numbers = np.concatenate([versions[v].rows.numbers for v in parts])
        lookup = Lookup(numbers, np.concatenate(list(parts.values())))
        end_of = _ends(versions, placing, held, given, lookup)
        if all(_share(end_of, seen[phase]) >= RECOGNISED for phase in ("train", "eval")):
            return _planned(versions, placing, seen, series, end_of, held, first)
    return None


def _parts_of(versions: Sequence[Version], series: int, held: Collection[int]) -> dict[int, Places]:
    """Stretches of a series that were scaled by themselves, before windows were cut from them."""
    whole = versions[series].rows.numbers
    found: dict[int, Places] = {}
    for v in range(series + 1, max(held)):
        part = versions[v]
        if v in held or part.rows.is_text or len(found) >= _PARTS or part.count >= len(whole):
            continue
        places = stretch(whole, part.rows.numbers)
        if places is not None and is_scaled(part.rows.numbers, whole[places]):
            found[v] = places
    return found


def stretch(whole: Numbers, made: Numbers) -> Places | None:
    """Where rows stand one after another in a longer container, in another scale: the first rows are
    looked for by how each goes on from the one before, against the step before that.
    """
    if whole.shape[1] != made.shape[1] or len(whole) < len(made) or len(made) < LEAST_SERIES:
        return None
    widest = int(np.argmax(made.std(0)))
    measured = (c for c in range(min(made.shape[1], _COLUMNS)) if is_measured(made[:, c]))
    for column in dict.fromkeys((widest, *measured)):
        long, short = (np.diff(side[:, column].astype(np.float64)) for side in (whole, made))
        with np.errstate(all="ignore"):
            ratios, wanted = long[1:] / long[:-1], (short[1:] / short[:-1])[:_STEPS]
        starts = np.arange(len(whole) - len(made) + 1)
        for step, ratio in enumerate(wanted):
            starts = starts[np.isclose(ratios[starts + step], ratio, rtol=_STEP_ROUNDING)]
        if len(starts) == 1:
            return np.arange(len(made)) + int(starts[0])
    return None


def _is_met(hashes: Hashes, seen: Seen) -> bool:
    picked = hashes[:: 1 + len(hashes) // _TRIED].tolist()
    return any(h in rows for rows in seen.values() for h in picked)


def _share(end_of: Mapping[int, int], rows: Mapping[int, float | None]) -> float:
    return sum(h in end_of for h in rows) / max(len(rows), 1)


def _series(
    versions: Sequence[Version], placing: Placing, width: int, held: Sequence[int]
) -> Iterator[int]:
    """Containers that windows may be cut from, the latest first."""
    tried = 0
    for v in range(max(held) - 1, -1, -1):
        here = versions[v]
        numbers = here.rows.numbers
        if tried >= _SERIES or here.rows.is_text or here.count < max(LEAST_SERIES, width):
            continue
        if numbers.size > _LARGEST:
            continue
        if v in held or placing.space[v] < 0 or not placing.is_whole(v) or here.is_remade:
            continue
        if any(is_measured(numbers[:, c]) for c in range(min(numbers.shape[1], _COLUMNS))):
            tried += 1
            yield v


def _ends(
    versions: Sequence[Version],
    placing: Placing,
    held: Sequence[int],
    given: Sequence[Numbers],
    lookup: Lookup,
) -> dict[int, int]:
    """Hash of a row that the model is given -> its last row in the series. Rows that were scaled
    since are found by the windows that they were made from, which stand in the same order.
    """
    end_of: dict[int, int] = {}
    for v in sorted(held, key=lambda v: -versions[v].count):
        hashes = versions[v].rows.hashes.tolist()
        if end_of.keys() >= set(hashes):
            continue
        same = [u for u in range(v, -1, -1) if _are_same_rows(versions, placing, u, v)]
        for u in same[:_MADE_FROM]:
            numbers = versions[u].rows.numbers
            tried = lookup.ends(numbers[:: 1 + len(numbers) // _TRIED])
            if float(np.mean(tried >= 0)) < RECOGNISED:
                continue
            pairs = zip(hashes, lookup.ends(numbers).tolist(), strict=True)
            end_of.update((h, end) for h, end in pairs if end >= 0)
            break
        if not end_of:
            return {}  # the largest are no windows of it: the others are not either
    for numbers in given:
        pairs = zip(hash_rows(numbers).tolist(), lookup.ends(numbers).tolist(), strict=True)
        end_of.update((h, end) for h, end in pairs if end >= 0 and h not in end_of)
    return end_of


def _are_same_rows(versions: Sequence[Version], placing: Placing, u: int, v: int) -> bool:
    """Whether two containers hold the same windows in the same order."""
    here, other = versions[v].rows.numbers, versions[u].rows.numbers
    return here.shape == other.shape and (
        u == v
        or (
            placing.space[u] == placing.space[v]
            and np.array_equal(placing.base[u], placing.base[v])
        )
    )


def _planned(
    versions: Sequence[Version],
    placing: Placing,
    seen: Seen,
    series: int,
    end_of: Mapping[int, int],
    held: Sequence[int],
    first: Collection[int],
) -> WindowRows | None:
    count = versions[series].count
    trained = {h: end_of[h] for h in seen["train"] if h in end_of}
    only = {h: end_of[h] for h in seen["eval"] if h in end_of and h not in seen["train"]}
    if min(len(trained), len(only)) < LEAST_ROWS:
        return None
    ends = sorted(only[h] for h in only.keys() & set(first)) or sorted(only.values())
    moment = ends[len(ends) // 2] + 1  # right behind a window: a look ahead of one row is seen
    wholes = [
        x
        for v, x in enumerate(versions)
        if placing.space[v] == placing.space[series]
        and x.count == count
        and placing.is_whole(v)
        and not x.is_remade
    ]
    asked = [(end, t) for h, end in trained.items() if (t := seen["train"][h]) is not None]
    found = _answered(wholes, asked)
    start, ahead = found if found is not None else (_handed_over(wholes, versions), 0)
    if start is None or moment >= count:
        return None
    is_before = max(trained.values()) < moment
    reaching = {h for h, end in end_of.items() if end >= moment}
    return WindowRows(
        start,
        tuple(sorted({x.name for x in wholes if x.code is start.code and x.event <= start.event})),
        tuple(range(moment, count)),
        tuple(trained) if is_before else (),
        only,
        ahead,
        frozenset(
            versions[v].name for v in held if reaching & set(versions[v].rows.hashes.tolist())
        ),
    )


def _answered(
    wholes: Sequence[Version], asked: Sequence[tuple[int, float]]
) -> tuple[Version, int] | None:
    """The first container that holds what the windows are asked for, and how many rows behind their
    end: whatever it was made from is how the data came about.
    """
    picked = asked[:: 1 + len(asked) // _ASKED]
    if len(picked) < LEAST_ROWS:
        return None
    ends = np.array([end for end, _ in picked], np.int64)
    targets = np.array([t for _, t in picked], np.float32)
    for whole in sorted(wholes, key=lambda x: (x.depth, x.event)):
        numbers = whole.rows.numbers
        for ahead in range(MOST_AHEAD + 1):
            inside = ends + ahead < len(numbers)
            if inside.sum() < LEAST_ROWS or len(np.unique(targets[inside])) < 2:
                break
            rows = numbers[ends[inside] + ahead][:, :_COLUMNS]
            for column in _that_follow(rows, targets[inside]):
                if _is_asked_for(rows[:, column], targets[inside]):
                    return whole, ahead
    return None


def _that_follow(rows: Numbers, targets: Targets) -> list[int]:
    """Columns worth a closer look: a search of all of them at every distance would take seconds."""
    with np.errstate(all="ignore"):
        off, wanted = rows - rows.mean(0), targets - targets.mean()
        alike = wanted @ off / np.sqrt((off**2).sum(0) * (wanted**2).sum())
    return [int(c) for c in np.flatnonzero(np.abs(alike) >= _FOLLOWS)]


def _is_asked_for(values: Numbers, targets: Targets) -> bool:
    return is_answer(values, targets) or follows_answer(values, targets) or _is_cut(values, targets)


def _is_cut(values: Numbers, targets: Targets) -> bool:
    """Whether two classes are a quantity below and above one limit."""
    kinds, counts = np.unique(targets, return_counts=True)
    if len(kinds) != 2 or counts.min() < _OF_A_CLASS or not is_measured(values):
        return False
    low, high = values[targets == kinds[0]], values[targets == kinds[1]]
    return bool(low.max() < high.min() or high.max() < low.min())


def _handed_over(wholes: Sequence[Version], versions: Sequence[Version]) -> Version | None:
    """The series where a function of the script hands it over, which has made or read it: what comes
    after that is preparation. None where it is made where it is used.
    """
    start = min(wholes, key=lambda x: (x.depth, x.event))
    is_made_below = any(
        x.count == start.count and x.depth > start.depth and x.event < start.event for x in versions
    )
    return start if is_made_below else None
