"""Populations that a model is far worse on: what moved decides which fault it is, one for each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import deployment as limits
from sawbones.evidence.readings import compared, context
from sawbones.evidence.weighing import NothingToJudge
from sawbones.schema import Evidence, Run, Site
from sawbones.schema.populations import MovedColumn, WorsePair
from sawbones.trace.given_lines import given_lines
from sawbones.trace.locate import locate

SHOWN = 3  # columns


def far_worse(run: Run, fault: str) -> list[WorsePair]:
    """Pairs of populations, worst first, whose difference is of this fault's kind."""
    seen = run.populations
    if not any(p.kind for p in seen.passes):
        why = seen.why or "no evaluation whose answers and targets were both seen"
        raise NothingToJudge(why)
    worst = next((pair for pair in seen.worse if _is_far(pair)), None)
    return [] if worst is None or kind_of(worst) != fault else [worst]


def _is_far(pair: WorsePair) -> bool:
    if pair.reference == pair.later:
        return limits.KIND_RISE.reached_by(pair.lower) and pair.kind == "classes"
    if is_by_precision(pair):
        return True
    rise = limits.ERROR_RISE if pair.kind == "classes" else limits.DISTANCE_RISE
    return rise.reached_by(pair.lower) and limits.ERROR_FACTOR.reached_by(pair.ratio)


def is_by_precision(pair: WorsePair) -> bool:
    """Other class rates alone: answers of one class are right far less often."""
    labels, precision = pair.labels, pair.precision
    return (
        precision is not None
        and limits.PRECISION_FALL.reached_by(precision.lower)
        and labels is not None
        and limits.OTHER_RATES.reached_by(labels.apart)
        and limits.WITHIN_CLASS.kept_by(pair.within)
    )


def kind_of(pair: WorsePair) -> str:
    """ "" where the inputs moved, and no single column shows how."""
    if pair.is_part or pair.kinds:
        return "deployment.subgroup"
    moved = [c for c in pair.columns if limits.MOVED_COLUMN.reached_by(c.apart)]
    # Of windows, a feature is one column in each step; what drifts with it has not changed its unit.
    changed = sum(map(is_other_unit, moved))
    few = limits.FEW_MOVED.kept_by(changed / max(pair.width, 1))
    if changed and (few or pair.num_columns == 1) and is_other_unit(moved[0]):
        return "deployment.pipeline-drift"
    labels = pair.labels
    rates = labels is not None and limits.OTHER_RATES.reached_by(labels.apart)
    if rates and limits.WITHIN_CLASS.kept_by(pair.within):
        return "deployment.label-shift"
    if moved:
        return "deployment.covariate-shift"
    return "" if limits.MOVED_TOGETHER.reached_by(pair.together) else "deployment.concept-drift"


def is_other_unit(column: MovedColumn) -> bool:
    """Another spread by a factor, or another zero, or nothing but one value."""
    factor = abs(math.log(column.spread)) if column.spread else math.inf
    return limits.OTHER_UNIT.reached_by(factor) or limits.OTHER_ZERO.reached_by(abs(column.shift))


def far_outside(pair: WorsePair) -> Iterator[Evidence]:
    """A column with next to nothing of what the other rows have in it: no season does that."""
    first = pair.columns[0]
    factor = first.spread if first.spread >= 1 else 1 / max(first.spread, TINY)
    by = max(abs(first.shift), factor if first.spread else 0.0)
    if limits.FAR_OUTSIDE.reached_by(by) and limits.NEXT_TO_NOTHING.reached_by(first.apart):
        text = (
            f"input column {first.column} lies {by:.3g} times its spread away from where it was, or is "
            "wider or narrower by that factor"
        )
        yield compared(text, by, limits.FAR_OUTSIDE, expected=0, signal="populations")


def worse_by(pair: WorsePair) -> Evidence:
    """The reading that carries the finding."""
    first, second = pair.scores
    n, m = pair.rows
    rising = limits.ERROR_RISE.reached_by(pair.lower)
    fall = pair.precision
    if pair.kind == "classes" and not rising and fall is not None and is_by_precision(pair):
        text = (
            f"answers of class {fall.label:g} are right in {fall.before:.2f} over {n} rows, in "
            f"{fall.after:.2f} over {m} others: less by at least {fall.lower:.2f} "
            f"({pair.tried} comparisons); accuracy {first:.2f} and {second:.2f}"
        )
        limit = limits.PRECISION_FALL
        return compared(text, fall.lower, limit, expected=0, signal="populations")
    if pair.kind == "classes":
        rise = limits.KIND_RISE if pair.reference == pair.later else limits.ERROR_RISE
        text = (
            f"accuracy {first:.2f} over {n} rows, {second:.2f} over {m} others: worse by at least "
            f"{pair.lower:.2f} ({pair.tried} comparisons)"
        )
        return compared(text, pair.lower, rise, expected=0, signal="populations")
    text = (
        f"mean distance {first:.3g} over {n} rows, {second:.3g} over {m} others: at least "
        f"{math.exp(pair.lower):.2f} times ({pair.tried} comparisons)"
    )
    return compared(text, pair.lower, limits.DISTANCE_RISE, expected=0, signal="populations")


def moved_by(columns: Sequence[MovedColumn]) -> Iterator[Evidence]:
    """The furthest."""
    for c in columns[:SHOWN]:
        text = (
            f"input column {c.column}: moved by {c.shift:+.2f} spreads, spread "
            f"{c.spread:.3g} times as large (distance {c.apart:.2f})"
        )
        yield context(text, signal="populations", value=c.apart, expected=0)


def where(run: Run, sites: Sequence[Site]) -> tuple[Site, ...]:
    """Where the rows come from that are answered worse, and where they are evaluated."""
    made = [m for s in sites for m in given_lines(run, s, ("assign", "unpack"))]
    return locate(*made[:1], sites[0], *made[1:2], *sites)[:4]
