"""Finding -> patches: what its recipe wants, applied to the text, as a diff that nobody has run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from sawbones.fixing.editing import EditRefused, apply, loses_a_comment, unified_diff, without_idle
from sawbones.fixing.recipes import Case, Change, Decide, recipes
from sawbones.fixing.source import Source
from sawbones.schema import Finding, Fix, Report, Run

MOST_TRIES = 3


@dataclass(frozen=True)
class Patch:
    """The files that a change touches, before and after."""

    fault: str
    change: Change
    files: tuple[tuple[Source, Source], ...]

    @property
    def diff(self) -> str:
        return "".join(unified_diff(old, new) for old, new in self.files)

    @property
    def level(self) -> str:
        """How far it may be trusted before it was run."""
        risky = self.change.unsafe or any(loses_a_comment(old, new) for old, new in self.files)
        return "unsafe" if risky else "safe"


@dataclass(frozen=True)
class Proposal:
    """What a recipe says: patches, the smallest first, or a question for a person."""

    patches: tuple[Patch, ...] = ()
    decide: Decide | None = None


def propose(finding: Finding, run: Run, root: Path, strict: bool = False) -> Proposal:
    """`strict`: a recipe that fails raises, for our own tests; else it has nothing to say."""
    recipe = recipes().get(finding.fault)
    if recipe is None:
        return Proposal()
    case = Case(finding, run, root)
    patches: list[Patch] = []
    decide: Decide | None = None
    try:
        for found in recipe(case):
            if isinstance(found, Decide):
                decide = decide or found
                continue
            patch = _patch(finding.fault, found, case)
            if patch is not None and all(patch.diff != known.diff for known in patches):
                patches.append(patch)
            if len(patches) == MOST_TRIES:
                break
    except EditRefused:
        pass
    except Exception:  # one recipe's mistake must not cost the user the diagnosis
        if strict:
            raise
    return Proposal(tuple(patches), decide)


def _patch(fault: str, change: Change, case: Case) -> Patch | None:
    try:
        for source in case.sources(change):
            change = dataclasses.replace(change, edits=without_idle(source, change.edits))
        return Patch(fault, change, changed(case.sources(change), change))
    except EditRefused:
        return None


def changed(sources: list[Source], change: Change) -> tuple[tuple[Source, Source], ...]:
    return tuple((source, apply(source, change.edits)) for source in sources)


def proposed(report: Report, run: Run, root: Path) -> Report:
    """The report with a patch for each finding whose recipe has one. Nobody has run them."""
    return dataclasses.replace(
        report, findings=tuple(_with_patch(f, run, root) for f in report.findings)
    )


def _with_patch(finding: Finding, run: Run, root: Path) -> Finding:
    proposal = propose(finding, run, root)
    if proposal.patches:
        patch = proposal.patches[0]
        fix = Fix(patch.change.summary, patch=patch.diff, level=patch.level)
        return dataclasses.replace(finding, fix=fix)
    if proposal.decide is not None:
        return dataclasses.replace(finding, fix=Fix(proposal.decide.text))
    return finding
