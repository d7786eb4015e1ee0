"""What can be asked to be written: the text that the person fills in, hidden inputs by seed, the exact
answer, and the mistakes that people make, each as a function, so that the grader can name them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from sawbones.schema.errors import SawbonesError

Terms = dict[str, Any]
Written = Callable[..., Terms]
NUM_CASES = 6


class NoAssignment(SawbonesError):
    """A name that nothing is asked under."""


@dataclass(frozen=True)
class Case:
    """Arguments of one call, and what is special about them, in words."""

    about: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Assignment:
    name: str
    minutes: float
    function: str
    starter: str  # the file that the person gets
    terms: tuple[str, ...]  # in the order in which they are computed: the first wrong one is shown
    case: Callable[[np.random.Generator, int], Case]  # the generator and the number of the case
    reference: Written
    mistakes: Mapping[str, Written]  # what was done wrong -> a function that does it
    relative: float = 1e-9  # of the largest entry of a term
    absolute: float = 0.0
    page: str = "derivations"  # what to read afterwards: sawbones explain PAGE

    @property
    def file(self) -> str:
        return f"{self.name.replace('-', '_')}.py"

    @property
    def about(self) -> str:
        return self.starter.strip().strip('"').partition("\n")[0]

    def cases(self, seed: int) -> list[Case]:
        rng = np.random.default_rng([seed, len(self.name)])
        return [self.case(rng, number) for number in range(NUM_CASES)]


@cache
def assignments() -> dict[str, Assignment]:
    from sawbones.practise.writing import data_side, networks, updates

    every = (*networks.ASSIGNMENTS, *updates.ASSIGNMENTS, *data_side.ASSIGNMENTS)
    return {one.name: one for one in every}


def assignment(name: str) -> Assignment:
    known = assignments()
    if name not in known:
        raise NoAssignment(f"nothing is asked under {name!r}. There is: {', '.join(known)}")
    return known[name]
