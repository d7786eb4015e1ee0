"""Drift window by window: each hour, day or week of the current data against the reference, with a
limit that is passed by chance as often as was said, and no oftener.

The distance of a column is the share of the rows that would have to change their bin. It is put
into units of what rows drawn from the reference show in a window of that size, and the largest over
all columns counts. The limit is the larger of two: what windows of drawn rows pass as rarely as
asked, and what the reference's own windows show, since days differ from each other in more than
chance. Both hold for the whole window, however many columns there are.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sawbones.audits.case import Case, made, per_cent
from sawbones.audits.engine.split import Split
from sawbones.audits.engine.tallies import Tally, tally_categories, tally_numbers
from sawbones.audits.options import AuditError
from sawbones.schema import Evidence, Finding

WIDTHS = {"hour": 3600, "day": 86400, "week": 7 * 86400}
MONDAY = 3 * 86400  # the epoch began on a Thursday
LEAST_ROWS = 30  # of a window
MOST_BINS = 12  # of a column: finer ones are noise in a window of some hundred rows
DRAWN = 1000  # windows for the limit; more for a rarer alarm
BEYOND = 20  # of them that lie beyond the limit, so that it is known well
SHOWN = 6  # windows that are listed

Counts = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Window:
    start: int  # seconds
    rows: int
    column: str
    distance: float  # share of the rows of that column that would have to change their bin
    score: float  # the same in units of chance
    limit: float

    @property
    def is_alert(self) -> bool:
        return self.score > self.limit


@dataclass(frozen=True)
class Looked:
    windows: tuple[Window, ...]
    rate: float  # of false alarms in one window, as far as it is known
    num_reference: int  # windows of the reference that the limit was compared with
    too_small: int  # windows of fewer rows than are needed


def look(case: Case, by: str, rate: float) -> Looked:
    """Every window of the current data."""
    reference, current = case.splits["reference"], case.splits["current"]
    time = case.options.time
    if time is None:
        raise AuditError(f"--by {by} needs the moment of each row: --time COLUMN")
    if time not in current.columns:
        raise AuditError(f"--time {time}: no such column in current")
    tallies = _tallies(case, current, by, time)
    expected = _tallies(case, reference, by, time if time in reference.columns else None)
    columns = {name: _Column(expected[name]) for name in tallies if name in expected}
    if not columns:
        raise AuditError("no column is left to compare window by window")
    null = _Null(columns, rate)
    known = _windows(columns, expected, null, math.inf)
    limit, rate = _of_reference([w.score for w in known], rate)
    found = _windows(columns, tallies, null, limit)
    small = len(_starts(tallies)) - len(found)
    return Looked(tuple(found), rate, len(known), small)


def _tallies(case: Case, split: Split, by: str, time: str | None) -> dict[str, Tally]:
    """Counts of every column by window; the start of a window in seconds names it."""
    window = None
    if time is not None:
        width, offset = WIDTHS[by], MONDAY if by == "week" else 0
        seconds = split.seconds(time)
        window = (((seconds + offset) / width).floor() * width - offset).cast("int64")
    own = [n for n in (case.options.label, case.options.prediction) if n is not None]
    named = [n for n in own if n in split.columns and n in case.first.columns]
    numbers = {n: c for n, c in case.cuts.items() if n != time}
    categories = [n for n in (*case.categories, *named) if n != time and n not in numbers]
    few = [n for n in dict.fromkeys(categories) if case.first.columns[n].kind == "category"]
    found = tally_numbers(split, numbers, window)
    return {**found, **tally_categories(split, few, window)}


class _Column:
    """Bins of the reference, joined until each holds a fair share; one more for what is new."""

    def __init__(self, tally: Tally) -> None:
        total = tally.total
        self._place: dict[str, int] = {}
        share, here = 0.0, 0
        least = max(1.0, float(total.sum())) / MOST_BINS
        for name, count in zip(tally.bins, total.tolist(), strict=True):
            self._place[name] = here
            share += count
            if share >= least:
                share, here = 0.0, here + 1
        self._size = here + 2
        self.shares = self.counts(tally.bins, total)
        self.shares = (self.shares + 0.5) / (self.shares + 0.5).sum()  # what is rare may come

    def counts(self, bins: list[str], counts: Counts) -> Counts:
        found = np.zeros(self._size)
        for name, count in zip(bins, counts.tolist(), strict=True):
            found[self._place.get(name, self._size - 1)] += count
        return found

    def distance(self, counts: Counts) -> float:
        return float(np.abs(counts / counts.sum() - self.shares).sum() / 2)


class _Null:
    """What windows of rows drawn from the reference show, by their number of rows."""

    def __init__(self, columns: Mapping[str, _Column], rate: float) -> None:
        self._columns = columns
        self._rate = rate
        self._known: dict[int, tuple[dict[str, tuple[float, float]], float]] = {}

    def of(self, rows: int) -> tuple[dict[str, tuple[float, float]], float]:
        """(mean and spread of each column's distance, the limit of the largest in these units)."""
        near = round(2 ** (round(4 * math.log2(rows)) / 4))  # to a fifth: enough for chance
        if near not in self._known:
            rng = np.random.default_rng(near)
            num = max(DRAWN, math.ceil(BEYOND / self._rate))
            moments: dict[str, tuple[float, float]] = {}
            largest = np.full(num, -math.inf)
            for name, column in self._columns.items():
                drawn = rng.multinomial(near, column.shares, num) / near
                distances = np.abs(drawn - column.shares).sum(1) / 2
                mean, spread = float(distances.mean()), float(distances.std()) or 1e-12
                moments[name] = (mean, spread)
                largest = np.maximum(largest, (distances - mean) / spread)
            self._known[near] = (moments, float(np.quantile(largest, 1 - self._rate)))
        return self._known[near]


def _starts(tallies: Mapping[str, Tally]) -> list[int]:
    """None: rows without a moment."""
    first = next(iter(tallies.values()), None)
    return sorted(k for k in first.counts if k is not None) if first is not None else []


def _windows(
    columns: Mapping[str, _Column], tallies: Mapping[str, Tally], null: _Null, least: float
) -> list[Window]:
    """`least`: a limit from elsewhere, which counts where it is the larger one."""
    found = []
    for start in _starts(tallies):
        counts = {
            name: column.counts(tallies[name].bins, tallies[name].counts[start])
            for name, column in columns.items()
            if start in tallies[name].counts
        }
        rows = int(max(c.sum() for c in counts.values()))
        if rows < LEAST_ROWS:
            continue
        moments, limit = null.of(rows)
        distances = {name: columns[name].distance(c) for name, c in counts.items()}
        scores = {n: (d - moments[n][0]) / moments[n][1] for n, d in distances.items()}
        worst = max(scores, key=lambda n: scores[n])
        limit = max(limit, least) if math.isfinite(least) else limit
        found.append(Window(start, rows, worst, distances[worst], scores[worst], limit))
    return found


def _of_reference(scores: list[float], rate: float) -> tuple[float, float]:
    """(what the reference's own windows pass as rarely as asked, the rate that this stands for).
    Of few windows the largest has to do, and a new one of the same kind passes it once in their
    number and one.
    """
    if not scores:
        return -math.inf, rate
    ordered = sorted(scores)
    place = math.ceil((len(ordered) + 1) * (1 - rate))
    if place <= len(ordered):
        return ordered[place - 1], rate
    return ordered[-1], max(rate, 1 / (len(ordered) + 1))


def findings(case: Case, looked: Looked, windows: list[Window]) -> Iterator[Finding]:
    """One for inputs, one for labels; windows that moved by less than the threshold are noise that
    a large window makes certain.
    """
    least = case.thresholds.window
    label = case.options.label
    for fault, is_label in (
        ("deployment.covariate-shift", False),
        ("deployment.label-shift", True),
    ):
        moved = [
            w
            for w in windows
            if w.is_alert and w.distance >= least and (w.column == label) == is_label
        ]
        if not moved:
            continue
        columns = ", ".join(dict.fromkeys(w.column for w in moved))
        yield made(
            fault,
            "likely",
            0.9,
            f"{len(moved)} of {len(windows)} windows differ from the reference, from "
            f"{shown(moved[0].start)} on ({columns})",
            [_evidence(w, least) for w in moved[:SHOWN]],
            "Look at what changed at that moment: the source of these columns, their unit, who is "
            "asked. Train again where the world has changed, mend the source where it broke.",
            columns=sorted({w.column for w in moved}),
            windows=[shown(w.start) for w in moved],
            false_alarm_rate=looked.rate,
        )


def _evidence(window: Window, least: float) -> Evidence:
    text = (
        f"{shown(window.start)}: {per_cent(window.distance)} of {window.rows} rows would have to "
        f"change their value of {window.column} ({window.score:.1f} times the spread of chance, "
        f"limit {window.limit:.1f})"
    )
    return Evidence(text, "windows", value=window.distance, expected=least)


def shown(seconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M" if seconds % 86400 else "%Y-%m-%d")
