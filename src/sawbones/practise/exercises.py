"""Seed, level and layer -> an exercise: a healthy script and the same with faults in it.

Nothing is run here: an exercise follows from its seed alone, so that its answer need not be kept.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from sawbones.fixing.editing import unified_diff
from sawbones.fixing.source import Source
from sawbones.practise.injecting import Injector, injectors
from sawbones.practise.scripts import healthy
from sawbones.schema.errors import SawbonesError
from sawbones.scoring.cases import NEAR_LINES, changed_lines

SCRIPT = "train.py"
LEVELS = {
    1: "an error names the line",
    2: "one fault that the curve gives away",
    3: "one fault that has to be isolated",
    4: "two faults, or none",
    5: "three faults, or none",
}
_HARDNESS = {1: (1,), 2: (2,), 3: (3, 4), 4: (2, 3, 4), 5: (2, 3, 4)}
_CLEAN = 0.2  # of the exercises of levels 4 and 5 there is nothing to find
_TRIES = 300


class NoExercise(SawbonesError):
    """Nothing fits what was asked for."""


@dataclass(frozen=True)
class Exercise:
    seed: int
    level: int
    faults: tuple[str, ...]  # none: the script is healthy
    healthy: Source
    broken: Source

    @property
    def lines(self) -> frozenset[int]:
        return changed_lines(self.broken.text, self.healthy.text)

    def is_near(self, line: int) -> bool:
        return any(abs(line - known) <= NEAR_LINES for known in self.lines)

    @property
    def fix(self) -> str:
        """From the broken script to the healthy one."""
        return unified_diff(self.broken, self.healthy) if self.faults else ""


def make(seed: int, level: int = 3, layer: str | None = None) -> Exercise:
    rng = random.Random(f"{seed} {level} {layer}")
    if level >= 4 and layer is None and rng.random() < _CLEAN:
        source = Source.of(healthy(rng).text.encode(), SCRIPT)
        return Exercise(seed, level, (), source, source)
    fitting = [
        one
        for one in injectors().values()
        if one.level in _HARDNESS[level] and layer in (None, one.layer)
    ]
    if not fitting:
        usable = sorted({i.layer for i in injectors().values() if i.level in _HARDNESS[level]})
        raise NoExercise(
            f"no exercise of level {level} in the layer {layer}. Layers of this level: "
            f"{', '.join(usable)}"
        )
    count = {4: 2, 5: 3}.get(level, 1)
    for _ in range(_TRIES):
        source = Source.of(healthy(rng).text.encode(), SCRIPT)
        found = _injected(rng, source, fitting, count)
        if found is not None:
            return Exercise(seed, level, *found)
    raise NoExercise(f"no script has room for {count} faults of this kind; try another seed")


def _injected(
    rng: random.Random, source: Source, fitting: list[Injector], count: int
) -> tuple[tuple[str, ...], Source, Source] | None:
    """Faults of different layers as far as there are several; None where the script has no room."""
    broken = source
    done: list[Injector] = []
    chosen = rng.sample(fitting, len(fitting))
    for injector in chosen:
        if injector.layer in {one.layer for one in done}:
            continue
        versions = injector.into(broken)
        if versions:
            broken = rng.choice(versions)
            done.append(injector)
        elif not done:
            return None  # the first one is the one that was drawn: every fault comes up as often
        if len(done) == count:
            return tuple(one.fault for one in done), source, broken
    return None


def into_own(source: Source, seed: int, level: int, layer: str | None) -> list[Exercise]:
    """Exercises in a script of the user's, in the order of the seed."""
    rng = random.Random(f"{seed} {level} {layer}")
    found = []
    for injector in rng.sample(list(injectors().values()), len(injectors())):
        if layer in (None, injector.layer) and injector.level in _HARDNESS[level]:
            versions = injector.into(source)
            if versions:
                broken = rng.choice(versions)
                found.append(Exercise(seed, level, (injector.fault,), source, broken))
    return found
