"""Passes of one run side by side: populations on which a model is far worse than on its siblings,
with what moved, and copies of a model that answer otherwise than it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from sawbones.observe.populations.between import rows_between
from sawbones.observe.populations.channels import swapped_channels
from sawbones.observe.populations.columns import strongest_column
from sawbones.observe.populations.copied import copied_rows
from sawbones.observe.populations.judged import Judged, judged
from sawbones.observe.populations.log import PassLog
from sawbones.observe.populations.near_texts import joined, near_texts
from sawbones.observe.populations.recoding import recoded_labels
from sawbones.observe.populations.renumbering import renumbered
from sawbones.observe.populations.serving import served_pairs
from sawbones.observe.populations.shifting import worse_pairs
from sawbones.observe.populations.undoing import put_back
from sawbones.observe.populations.units import in_one_unit
from sawbones.observe.random_streams import streams_put_back
from sawbones.schema import Site
from sawbones.schema.populations import (
    CarryingColumn,
    CopiedRows,
    DerivedRows,
    Population,
    Populations,
    PutBack,
    Renumbering,
    SwappedChannels,
    WorsePair,
)

SHOWN_LINES = 4
MOST_KNOWN = 0.5  # share of the rows of a pass that are trained on: more is a training score
MAX_ROWS = 20_000  # of a pass whose errors are kept

T = TypeVar("T")


def compare_passes(log: PassLog) -> Populations:
    found = [
        one
        for i, here in enumerate(log.latest())
        if (one := judged(i, here, log.trained_for(here.module))) is not None
    ]
    trained = log.trained_rows(found[0].rows.shape[1] if found else 0)
    found = in_one_unit(found, trained)
    worse = worse_pairs(found, trained)
    return Populations(
        passes=tuple(_described(one) for one in found),
        why=log.why,
        column=_column(log, found),
        between=_between(log, found),
        copied=_copied(log, found),
        near_texts=_near_texts(log, found),
        channels=_channels(log, found),
        worse=tuple(replace(p, sites=_sites(found, p.later, p.reference)) for p in worse),
        put_back=_put_back(log, found, worse),
        served=tuple(
            replace(p, sites=_sites(found, p.served, p.trained)) for p in served_pairs(found)
        ),
        recoded=recoded_labels(log.latest()),
        renumbered=_renumbered(log, found),
    )


def _asked_again(ask: Callable[[], T | None]) -> T | None:
    """Measured with the model itself, which answers once more for other rows. Whatever it draws or
    raises stays here.
    """
    try:
        with streams_put_back():
            return ask()
    except Exception:  # a model may refuse rows that no script would give it
        return None


def _column(log: PassLog, found: list[Judged]) -> CarryingColumn | None:
    told = _asked_again(lambda: strongest_column(log, found))
    if told is None:
        return None
    return replace(told, sites=log.latest()[told.number].lines[:SHOWN_LINES])


def _put_back(log: PassLog, found: list[Judged], worse: Sequence[WorsePair]) -> PutBack | None:
    told = _asked_again(lambda: put_back(log, found, worse))
    if told is None:
        return None
    return replace(told, sites=_sites(found, told.served, told.reference))


def _renumbered(log: PassLog, found: list[Judged]) -> Renumbering | None:
    told = _asked_again(lambda: renumbered(log, found))
    if told is None:
        return None
    return replace(told, sites=log.latest()[told.number].lines[:SHOWN_LINES])


def _between(log: PassLog, found: list[Judged]) -> DerivedRows | None:
    """Of the largest pass over rows that are not trained on."""
    one = _held_out(found)
    return None if one is None else rows_between(one, log.trained_rows(one.rows.shape[1]))


def _copied(log: PassLog, found: list[Judged]) -> CopiedRows | None:
    """Of the pass with the largest share of copies."""
    told = [c for one in found if (c := copied_rows(log, one)) is not None]
    return max(told, key=lambda c: c.copies / c.rows, default=None)


def _near_texts(log: PassLog, found: list[Judged]) -> DerivedRows | None:
    one = _held_out(found)
    bags = log.latest()[one.number].bags if one is not None else []
    if one is None or not bags:
        return None
    return near_texts(one, joined(bags), joined(log.trained_bags))


def _channels(log: PassLog, found: list[Judged]) -> SwappedChannels | None:
    """The first pass of the trained model whose channels are not in the order of its largest."""
    own = [one for one in found if one.likeness is None]
    if len(own) < 2:
        return None
    largest = max(own, key=lambda one: len(one.hashes))
    shape = log.latest()[largest.number].shape
    for one in own:
        if one is largest or log.latest()[one.number].shape != shape:
            continue
        told = swapped_channels(largest, one, shape)
        if told is not None:
            return replace(told, sites=_sites(found, one.number, largest.number))
    return None


def _held_out(found: list[Judged]) -> Judged | None:
    held = [one for one in found if one.likeness is None and one.known < MOST_KNOWN]
    return max(held, key=lambda p: len(p.hashes), default=None)


def _described(one: Judged) -> Population:
    small = len(one.hashes) <= MAX_ROWS
    return Population(
        rows=len(one.hashes),
        known=one.known,
        kind=one.kind,
        score=one.score,
        new_score=one.new_score,
        number=one.number,
        width=one.answers.shape[1],
        errors=tuple(one.errors.tolist()) if one.errors is not None and small else (),
        given=_given(one) if small else (),
        hashes=one.hashes if small else (),
        site=one.lines[0] if one.lines else None,
    )


def _given(one: Judged) -> tuple[float, ...]:
    """Classes where several are scored, else the one number as it is."""
    several = one.answers.shape[1] > 1
    return tuple((one.answers.argmax(1) if several else one.answers[:, 0]).tolist())


def _sites(found: Sequence[Judged], number: int, other: int) -> tuple[Site, ...]:
    """Lines of this pass: first those that the other one does not come from."""
    by_number = {one.number: one.lines for one in found}
    mine, known = by_number[number], set(by_number[other])
    ordered = [*(x for x in mine if x not in known), *(x for x in mine if x in known)]
    return tuple(ordered[:SHOWN_LINES])
