"""Run -> Symptom: what is wrong to see, one file per symptom, found by folder.
symptoms/does_not_learn.py speaks for does-not-learn.

A symptom file holds
    CLASS      "ill" bars the verdict `healthy`; "notable" is shown and changes nothing
    NEEDS      the signals it reads; when one is missing it could not look
    CALLED     what people call it, for `sawbones explain`
    CAUSES     faults that can bring it about, as patterns; a finding of one of them explains it
    look(run)  a pure function that gives a symptom or None, or raises NothingToJudge: too little
               was seen to tell, or its null is not known for this run
Each measures against a null of its own: the noise of the series, the best constant answer, or
what must not happen at all. Its docstring is its page in docs/reference/symptoms/.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache

from sawbones.evidence import NothingToJudge
from sawbones.schema import CouldNotSee, Finding, Run, Symptom
from sawbones.schema.signals import missing_signal

# Faults that cost time, memory or repeatability and leave the result as it is.
HARMLESS = (
    "loop.checkpoint-corrupt",
    "loop.memory-leak",
    "loop.nondeterminism",
    "loop.sync-stall",
    "loop.unused-parameters",
    "pipeline.padding-waste",
    "pipeline.starved",
    "pipeline.worker-seed",
)


@dataclass(frozen=True)
class Watched:
    """One symptom of the closed list, as its file describes it."""

    symptom: str
    cls: str
    needs: tuple[str, ...]
    causes: tuple[str, ...]
    called: tuple[str, ...]
    page: str
    function: Callable[[Run], Symptom | None]

    def may_come_from(self, fault: str) -> bool:
        if fault in self.causes:
            return True
        return fault not in HARMLESS and any(fnmatch(fault, cause) for cause in self.causes)


@cache
def all_symptoms() -> tuple[Watched, ...]:
    """Ill ones first, by name."""
    found = []
    for file in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{file.name}")
        found.append(
            Watched(
                file.name.replace("_", "-"),
                module.CLASS,
                tuple(module.NEEDS),
                tuple(module.CAUSES),
                tuple(module.CALLED),
                module.__doc__ or "",
                module.look,
            )
        )
    return tuple(sorted(found, key=lambda watched: (watched.cls, watched.symptom)))


@dataclass(frozen=True)
class Signs:
    """What all symptoms said of one run."""

    symptoms: tuple[Symptom, ...]
    could_not_see: tuple[CouldNotSee, ...]


def read(run: Run, strict: bool = False) -> Signs:
    """All symptoms over one run. One that fails on it could not look; `strict` raises instead, for
    our own tests.
    """
    seen: list[Symptom] = []
    unseen: list[CouldNotSee] = []
    for watched in all_symptoms():
        why = missing_signal(run, watched.needs)
        if why is not None:
            unseen.append(CouldNotSee(watched.symptom, why))
            continue
        try:
            found = watched.function(run)
        except NothingToJudge as nothing:
            unseen.append(CouldNotSee(watched.symptom, str(nothing)))
            continue
        except Exception as error:  # one symptom's mistake must not cost the user the others
            if strict:
                raise
            why = f"the look itself failed: {type(error).__name__}: {error}"
            unseen.append(CouldNotSee(watched.symptom, why))
            continue
        if found is not None:
            seen.append(replace(found, symptom=watched.symptom, cls=watched.cls))
    return Signs(tuple(seen), tuple(unseen))


@cache
def only_unrepeatable() -> frozenset[str]:
    """Faults that say no more than that a run does not repeat: the cause of nothing else."""
    causes = next(w.causes for w in all_symptoms() if w.symptom == "not-repeatable")
    return frozenset(causes) & frozenset(HARMLESS)


def explained(symptoms: Sequence[Symptom], findings: Sequence[Finding]) -> tuple[Symptom, ...]:
    """Each symptom with the fault of the first likely or proven finding that can bring it about."""
    certain = [f.fault for f in findings if f.status in ("likely", "proven")]
    by_name = {watched.symptom: watched for watched in all_symptoms()}
    return tuple(
        replace(
            symptom,
            explained_by=next(
                (fault for fault in certain if by_name[symptom.symptom].may_come_from(fault)), None
            ),
        )
        for symptom in symptoms
    )
