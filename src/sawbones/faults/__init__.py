"""Run -> Finding: one room per fault, found by folder. faults/loss/double_softmax/check.py speaks
for loss.double-softmax; lab.py beside it is the broken pipeline with its healthy twin.

A check file holds
    NEEDS       the signals it reads; when one is missing the check "could not look"
    USES        facts that only help to find the line; the check works without them
    EXPLAINS    faults whose signs are only consequences of this one, so that one fault gives one
                finding
    EXPERIMENT  the experiment that decides it (a file of sawbones.trials), or None when the
                reading itself is proof
    PREVIEW     True while the check is new: `suspected` is all that a report says of it, until a
                round of programs by other hands has passed without a false alarm of it
    check(run)  a pure function that yields findings, or raises NothingToJudge: a check that found
                nothing of the kind it judges has not looked
A moved check has no number of its own and compares nothing that was measured: it makes readings
(sawbones.evidence) against limits (sawbones.evidence.limits), and the status follows from them.
Its docstring is the page of the catalogue.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache
from types import ModuleType

from sawbones.evidence import NothingToJudge, context
from sawbones.schema import LAYERS, CouldNotLook, Finding, Run
from sawbones.schema.signals import missing_signal
from sawbones.trace.feeding import own_lines_first

GIVEN = ("data", "model", "loss")  # layers of what a training loop is given


@dataclass(frozen=True)
class Check:
    fault: str
    needs: tuple[str, ...]
    explains: tuple[str, ...]
    experiment: str | None
    page: str
    uses: tuple[str, ...]  # facts that help to find the line
    function: Callable[[Run], Iterable[Finding]]
    preview: bool = False

    @property
    def layer(self) -> str:
        return self.fault.split(".")[0]


def _modules() -> Iterator[tuple[str, ModuleType]]:
    for layer in LAYERS:
        try:
            package = importlib.import_module(f"{__name__}.{layer}")
        except ModuleNotFoundError:
            continue
        for room in sorted(pkgutil.iter_modules(package.__path__), key=lambda m: m.name):
            fault = f"{layer}.{room.name.replace('_', '-')}"
            yield fault, importlib.import_module(f"{package.__name__}.{room.name}.check")


@cache
def all_checks() -> tuple[Check, ...]:
    return tuple(
        Check(
            fault,
            tuple(module.NEEDS),
            tuple(getattr(module, "EXPLAINS", ())),
            getattr(module, "EXPERIMENT", None),
            module.__doc__ or "",
            tuple(getattr(module, "USES", ())),
            module.check,
            getattr(module, "PREVIEW", False),
        )
        for fault, module in _modules()
    )


@dataclass(frozen=True)
class Reading:
    """What all checks said of one run."""

    findings: tuple[Finding, ...]
    could_not_look: tuple[CouldNotLook, ...]
    silent: tuple[str, ...]


def read(run: Run, only: str = "*", strict: bool = False) -> Reading:
    """All checks over one run. A check that fails on it could not look; `strict` raises instead,
    for our own tests.
    """
    findings: list[Finding] = []
    blind: list[CouldNotLook] = []
    silent: list[str] = []
    for check in all_checks():
        if not fnmatch(check.fault, only):
            continue
        why = missing_signal(run, check.needs)
        if why is not None:
            blind.append(CouldNotLook(check.fault, why))
            continue
        try:
            said = [_complete(run, check, finding) for finding in check.function(run)]
        except NothingToJudge as nothing:
            blind.append(CouldNotLook(check.fault, str(nothing)))
            continue
        except Exception as error:  # one check's mistake must not cost the user the others' answers
            if strict:
                raise
            blind.append(
                CouldNotLook(
                    check.fault, f"the check itself failed: {type(error).__name__}: {error}"
                )
            )
            continue
        findings += said
        if not said:
            silent.append(check.fault)
    return Reading(tuple(findings), tuple(blind), tuple(silent))


def _complete(run: Run, check: Check, finding: Finding) -> Finding:
    if finding.fault != check.fault:
        finding = replace(finding, fault=check.fault)
    if len(finding.where) > 1 and check.fault.partition(".")[0] in GIVEN:
        finding = replace(finding, where=own_lines_first(run, finding.where))
    if finding.experiment is None and check.experiment is not None:
        finding = replace(finding, experiment=check.experiment)
    return finding


def as_far_as_known(finding: Finding) -> Finding:
    """A finding of a check that is still in preview is a suspicion, whatever its trial showed."""
    new = any(check.preview and check.fault == finding.fault for check in all_checks())
    if not new or finding.status == "suspected":
        return finding
    said = context("this check is new: a suspicion is the most that it may say", signal="preview")
    return replace(finding, status="suspected", evidence=(*finding.evidence, said))
