"""Signs of a changed pipeline rather than a changed world: a unit, an encoding, missing values, a
jump at one date.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import numpy as np

from sawbones.audits.case import Case, per_cent
from sawbones.audits.engine.tallies import Cuts, bucket
from sawbones.audits.shift.moves import Move, moves, sides

# How one unit becomes another: name, factor, offset of new = factor * old + offset.
UNITS = (
    ("x 10", 10.0, 0.0),
    ("x 100", 100.0, 0.0),
    ("x 1,000", 1e3, 0.0),
    ("x 1,000,000", 1e6, 0.0),
    ("x 60", 60.0, 0.0),
    ("x 3,600", 3600.0, 0.0),
    ("x 24", 24.0, 0.0),
    ("x 86,400", 86400.0, 0.0),
    ("x 1,024", 1024.0, 0.0),
    ("inches to centimetres", 2.54, 0.0),
    ("inches to millimetres", 25.4, 0.0),
    ("feet to metres", 0.3048, 0.0),
    ("miles to kilometres", 1.609344, 0.0),
    ("pounds to kilograms", 0.45359237, 0.0),
    ("Celsius to Fahrenheit", 1.8, 32.0),
    ("Celsius to Kelvin", 1.0, 273.15),
    ("sign turned", -1.0, 0.0),
)
TIME_BINS = 40
STEP = 0.8  # share of a series' variance that one step explains


@dataclass(frozen=True, slots=True)
class Sign:
    column: str
    what: str
    value: float
    expected: float
    fix: str
    move: Move | None = None


def pipeline_signs(case: Case) -> list[Sign]:
    if "signs" not in case.found:
        case.found["signs"] = _signs(case)
    found: list[Sign] = case.found["signs"]
    return found


def _signs(case: Case) -> list[Sign]:
    reference, current = sides(case)
    found = []
    apart = {case.options.label, case.options.prediction, *case.options.ignore}
    for name, column in reference.columns.items():
        if name in apart or column.kind == "empty":
            continue
        if name not in current.columns:
            found.append(
                Sign(
                    name,
                    f"{name} is in the reference and not in the current data",
                    0,
                    1,
                    f"Bring {name} back, or retrain without it.",
                )
            )
        elif current.columns[name].kind == "empty":
            found.append(
                Sign(
                    name,
                    f"{name} has no value at all in the current data",
                    1.0,
                    column.missing_share,
                    f"Find out who stopped filling {name}.",
                )
            )
        elif reference.is_number(name) != current.is_number(name):
            was, now = ("a number", "text") if reference.is_number(name) else ("text", "a number")
            found.append(
                Sign(name, f"{name} was {was} and is {now}", 1, 0, f"Write {name} as {was} again.")
            )
    for move in moves(case):
        sign = (
            _missing(case, move)
            or _categories(case, move)
            or (_unit(case, move) if move.moved and move.kind == "number" else None)
        )
        if sign is not None:
            found.append(sign)
    known = {sign.column for sign in found}
    moved = [m for m in moves(case) if m.moved and m.column not in known]
    # One column that jumps while the world stands still; when many move, it is the world.
    if case.options.time and moved and len(moved) <= max(1, 0.1 * len(moves(case))):
        found += [sign for m in moved if (sign := _jump(case, m)) is not None]
    return found


def _missing(case: Case, move: Move) -> Sign | None:
    before, after = move.missing
    if (
        abs(after - before) < case.thresholds.null_rate
        or move.missing_p >= case.thresholds.significance
    ):
        return None
    return Sign(
        move.column,
        f"{move.column} is missing in {per_cent(after)} of the rows, before in {per_cent(before)}",
        after,
        before,
        f"Find out what changed in how {move.column} is filled.",
        move,
    )


def _categories(case: Case, move: Move) -> Sign | None:
    limit = case.thresholds.new_category
    if max(move.new_share, move.gone_share) < limit:
        return None
    parts = []
    if move.new_share >= limit:
        parts.append(
            f"{per_cent(move.new_share)} of the rows have values that the reference never "
            f"has ({_listed(case, move.new)})"
        )
    if move.gone_share >= limit:
        parts.append(
            f"values of {per_cent(move.gone_share)} of the reference are gone "
            f"({_listed(case, move.gone)})"
        )
    return Sign(
        move.column,
        f"{move.column}: {'; '.join(parts)}",
        max(move.new_share, move.gone_share),
        limit,
        f"Compare the encoding of {move.column} on both sides; map old values to new ones.",
        move,
    )


def _listed(case: Case, names: tuple[str, ...]) -> str:
    more = f", … {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(case.shown(n) for n in names[:4]) + more


def _unit(case: Case, move: Move) -> Sign | None:
    """Is the current column the reference in another unit? Only where that explains a large move
    almost entirely.
    """
    if move.ks < 0.25:
        return None
    reference, current = sides(case)
    before, after = reference.sample.get(move.column), current.sample.get(move.column)
    if before is None or after is None or before.dtype == object or after.dtype == object:
        return None
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    if len(before) < 30 or len(after) < 30:
        return None
    noise = 1.63 * (1 / len(before) + 1 / len(after)) ** 0.5
    best = None
    for name, factor, offset in UNITS:
        for inverse in (False, True):
            as_before = (after - offset) / factor if not inverse else after * factor + offset
            distance = _exact_ks(before, as_before)
            if best is None or distance < best[0]:
                best = (distance, f"{name}{', the other way' if inverse else ''}")
    if best is None or best[0] > 0.02 + noise or best[0] > 0.3 * move.ks:
        return None
    return Sign(
        move.column,
        (
            f"{move.column} is in another unit ({best[1]}): KS {move.ks:.3f} as it is, "
            f"{best[0]:.3f} converted"
        ),
        move.ks,
        case.thresholds.ks,
        f"Convert {move.column} back before it reaches the model.",
        move,
    )


def _exact_ks(a: np.ndarray, b: np.ndarray) -> float:
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    return float(
        np.abs(
            np.searchsorted(a, both, side="right") / len(a)
            - np.searchsorted(b, both, side="right") / len(b)
        ).max()
    )


def _jump(case: Case, move: Move) -> Sign | None:
    """A step in the column's mean over time that lies at one date."""
    time = str(case.options.time)
    if move.kind != "number" or any(time not in s.columns for s in case.splits.values()):
        return None
    reference, current = sides(case)
    moments: list[np.ndarray] = [s.sample[time] for s in (reference, current) if time in s.sample]
    if len(moments) < 2 or any(m.dtype == object for m in moments):
        return None
    both = np.concatenate(moments)
    low, high = np.nanmin(both), np.nanmax(both)
    if not high > low:
        return None
    step = (high - low) / TIME_BINS
    cuts = Cuts(low + step * np.arange(TIME_BINS + 1), float(step), float(low))
    sums, counts = np.zeros(TIME_BINS + 2), np.zeros(TIME_BINS + 2)
    for split in (reference, current):
        table = split.table.select(b=bucket(split.seconds(time), cuts), x=split.number(move.column))
        for row in case.session.rows(
            table.group_by("b").aggregate(n=table.x.count(), s=table.x.sum())
        ):
            if row["b"] is not None and row["n"]:
                sums[row["b"]] += row["s"]
                counts[row["b"]] += row["n"]
    used = np.flatnonzero(counts >= 20)
    if len(used) < 6:
        return None
    at = step_in(sums[used] / counts[used])
    if at is None:
        return None
    index, explained = at
    date = datetime.datetime.fromtimestamp(
        float(low + step * (used[index] - 1)), datetime.UTC
    ).strftime("%Y-%m-%d %H:%M")
    return Sign(
        move.column,
        f"{move.column} jumps at one date, about {date}, and no other column moves",
        explained,
        STEP,
        f"Look at what was deployed about {date} that writes {move.column}.",
        move,
    )


def step_in(series: np.ndarray) -> tuple[int, float] | None:
    """(first index after the step, variance explained) when one step describes the series far
    better than a line does.
    """
    total = float(((series - series.mean()) ** 2).sum())
    if total <= 0:
        return None
    best, index = np.inf, 0
    for k in range(2, len(series) - 1):
        rest = float(
            ((series[:k] - series[:k].mean()) ** 2).sum()
            + ((series[k:] - series[k:].mean()) ** 2).sum()
        )
        if rest < best:
            best, index = rest, k
    x = np.arange(len(series)) - (len(series) - 1) / 2
    line = float((x @ series) ** 2 / (x @ x)) / total
    explained = 1 - best / total
    return (index, explained) if explained >= STEP and explained > line + 0.1 else None
