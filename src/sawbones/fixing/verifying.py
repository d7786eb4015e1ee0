"""Patch -> what it does: the script with the patch in it, from the same seed, read by all checks.

A patch is *verified* when the fault is gone, the illness that it explains is gone, nothing else has
fired, and the fault's regression test fails without it and passes with it. Where an illness has
several causes, their patches are judged together. One that was tried and did not heal is not
offered; that it did not is evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from sawbones import faults, symptoms
from sawbones.diagnosis.engine import decide, with_source_change, with_twin
from sawbones.fixing.editing import EditRefused
from sawbones.fixing.pinned import Kept, PinnedTests
from sawbones.fixing.proposing import Patch, Proposal, changed, propose
from sawbones.fixing.recipes import Change
from sawbones.observe.options import diagnosing
from sawbones.schema import Evidence, Finding, Fix, Report, Run
from sawbones.stats.evaluations import validation_curve
from sawbones.stats.levels import level, part
from sawbones.stats.loss_curve import loss_curve
from sawbones.trials.bench import Bench, ChildFailed

PAST_THE_SYMPTOM = 20  # steps that a script has to take beyond the place where it died
PATIENCE = 3.0  # a patched run may take so many times as long as the one before
LEAST_SECONDS = 60.0
CURVE_POINTS = 40
# Times the first loss. A run that was thrown off and then ends so far above its start is not cured,
# even where its loss is finite.
ABOVE_START = 2.0
_THROWN_OFF = {"non-finite", "diverges"}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Tried:
    """What came of one patch, or of several together."""

    gone: bool  # the fault: the patched script runs, and its check no longer fires
    sick: tuple[str, ...]  # illness that the fault explained and that is still there
    new: tuple[str, ...]  # what fires or is ill now and did not before
    text: str
    measured: dict[str, Any]

    @property
    def healed(self) -> bool:
        return self.gone and not self.sick

    @property
    def verified(self) -> bool:
        return self.healed and not self.new

    @property
    def rank(self) -> int:
        """0: the fault is still there. A cure that sets something off is better than none."""
        return self.gone + self.healed + self.verified


@dataclass(frozen=True, eq=False)
class Candidate:
    """A patch whose fault is gone with it."""

    finding: Finding
    patch: Patch
    tried: Tried
    test: Kept
    learnt: tuple[Evidence, ...] = ()  # of the patches that were tried before it

    def judged(self, together: Tried | None) -> Finding:
        """The finding with its fix, which heals, alone or in company."""
        level = self._level(together)
        told = {**self.tried.measured, "test": self.test.to_plain()}
        told["result"] = f"{self.tried.text}; {self.test.text}"
        if together is not None:
            told["together"] = together.measured
        fix = Fix(self.patch.change.summary, patch=self.patch.diff, level=level, measured=told)
        evidence = (*self.finding.evidence, *self.learnt)
        return replace(self.finding, fix=fix, evidence=evidence)

    def _level(self, together: Tried | None) -> str:
        alone = self.tried.verified
        shared = not self.tried.new and together is not None and together.verified
        tested = self.test.tells_them_apart
        return "verified" if (alone or shared) and tested and not self._risky else "unsafe"

    @property
    def _risky(self) -> bool:
        return self.patch.level == "unsafe"

    @property
    def refuted(self) -> Finding:
        return replace(
            self.finding,
            fix=_without_patch(self.finding.fix),
            evidence=(*self.finding.evidence, *self.learnt, _not_healed(self.patch, self.tried)),
        )


@dataclass(frozen=True)
class Fixed:
    """A report with its patches tried, and the files as all verified patches make them."""

    report: Report
    patches: tuple[Patch, ...] = ()  # of the findings whose fix is verified
    unverified: tuple[Patch, ...] = ()  # offered, at another level
    together: Tried | None = None  # where there are several


class Verifier:
    def __init__(
        self,
        bench: Bench,
        run: Run,
        report: Report,
        say: Say,
        progress: Callable[[Path], None] | None = None,
    ) -> None:
        self.bench = bench
        self.run = run
        self.report = report
        self.say = say
        self.progress = progress
        before = faults.read(run)
        self.known = {f.fault for f in (*before.findings, *report.findings, *report.refuted)}
        self.ill = {s.symptom for s in symptoms.read(run).symptoms if s.cls == "ill"}
        self.tests = PinnedTests(bench, run, say)
        self.untried: list[Patch] = []  # for want of time

    def fix_all(self, root: Path) -> Fixed:
        """One patch for each likely or proven finding, each tried alone, then all together."""
        asked = [
            Proposal() if f.status == "suspected" else propose(f, self.run, root)
            for f in self.report.findings
        ]
        self._announce(sum(bool(p.patches) for p in asked))
        judged = [
            self._one(finding, proposal)
            for finding, proposal in zip(self.report.findings, asked, strict=True)
        ]
        together, chosen = self._together([f for f in judged if isinstance(f, Candidate)])
        findings = tuple(
            f if isinstance(f, Finding) else f.judged(together) if f in chosen else f.refuted
            for f in judged
        )
        pairs = zip(judged, findings, strict=True)
        offered = [(c.patch, f.fix) for c, f in pairs if isinstance(c, Candidate)]
        return Fixed(
            replace(self.report, findings=findings, notes=self._notes(together)),
            tuple(p for p, fix in offered if fix is not None and fix.level == "verified"),
            (
                *(p for p, fix in offered if fix is not None and fix.level == "unsafe"),
                *self.untried,
            ),
            together,
        )

    def _announce(self, count: int) -> None:
        if count:
            runs = count + (count > 1)
            self.say(
                f"{count} patch{'es' * (count > 1)} to try: at least {runs} more "
                f"run{'s' * (runs != 1)}, and {2 * count} of regression tests"
            )

    def _one(self, finding: Finding, proposal: Proposal) -> Candidate | Finding:
        """The first patch that heals and sets nothing else off, else the first that heals, else the
        first with which the fault is gone: its illness may have a second cause. What the others
        showed is evidence.
        """
        learnt: list[Evidence] = []
        waiting: tuple[Patch, Tried] | None = None
        if proposal.decide is not None and not proposal.patches:
            return replace(finding, fix=Fix(proposal.decide.text))
        for patch in proposal.patches:
            tried = None
            if not self.bench.interrupted and self.bench.seconds_left >= 5:
                self.say(f"{finding.fault}: running it with the patch: {patch.change.summary}")
                tried = self.try_patches([finding], [patch])
            if tried is None:
                self.untried.append(patch)
                fix = Fix(patch.change.summary, patch=patch.diff, level=patch.level)
                return replace(finding, fix=fix, evidence=(*finding.evidence, *learnt))
            if tried.verified:
                return self._candidate(finding, patch, tried, learnt)
            if tried.rank > (waiting[1].rank if waiting is not None else 0):
                waiting = patch, tried
            else:
                learnt.append(_not_healed(patch, tried))
        if waiting is not None:
            return self._candidate(finding, *waiting, learnt)
        plain = _without_patch(finding.fix)
        return replace(finding, fix=plain, evidence=(*finding.evidence, *learnt))

    def _candidate(
        self, finding: Finding, patch: Patch, tried: Tried, learnt: Sequence[Evidence]
    ) -> Candidate:
        changed_files = {new.file: new.raw for _, new in patch.files}
        test = self.tests.kept_out(finding, changed_files)
        return Candidate(finding, patch, tried, test, tuple(learnt))

    def _together(self, candidates: list[Candidate]) -> tuple[Tried | None, list[Candidate]]:
        """What all patches do in one run. Those that heal only in company are left out where even
        all do not heal, and the others are looked at without them.
        """
        together = self._all(candidates)
        alone = [c for c in candidates if c.tried.healed]
        if len(alone) == len(candidates) or (together is not None and together.healed):
            return together, candidates
        return self._all(alone), alone

    def _all(self, candidates: Sequence[Candidate]) -> Tried | None:
        if len(candidates) < 2 or self.bench.interrupted or self.bench.seconds_left < 5:
            return None
        all_of_them = "both" if len(candidates) == 2 else f"all {len(candidates)}"
        self.say(f"{all_of_them} patches together")
        try:
            return self.try_patches([c.finding for c in candidates], [c.patch for c in candidates])
        except EditRefused:
            return None

    def _notes(self, together: Tried | None) -> tuple[str, ...]:
        if together is None:
            return self.report.notes
        ends = [together.measured.get(k, {}).get("loss") for k in ("before", "after")]
        known = all(isinstance(e, (int, float)) for e in ends)
        loss = f"; loss {ends[0]:.4g} → {ends[1]:.4g}" if known else ""
        return (*self.report.notes, f"all patches together: {together.text}{loss}")

    def try_patches(self, findings: Sequence[Finding], patches: Sequence[Patch]) -> Tried | None:
        """None where the patched script could not be run for a reason that is not its own."""
        self.bench.changed_files = {new.file: new.raw for _, new in merged(patches)}
        try:
            return self._tried(findings)
        except ChildFailed as error:
            if self.bench.interrupted or self.bench.out_of_time:
                return None
            return Tried(False, (), (), f"(it does not run: {str(error).splitlines()[0]})", {})
        finally:
            self.bench.changed_files = {}
            self.bench.baseline = self.run

    def _tried(self, findings: Sequence[Finding]) -> Tried:
        run = self._patched_run([f.fault for f in findings])
        self.bench.baseline = run
        reading = faults.read(run)
        wanted = {f.fault for f in findings}
        again = [f for f in reading.findings if f.fault in wanted]
        new = set_off(reading.findings, self.known)
        stand, _, _ = decide(self.bench, run, [*again, *new], lambda text: None)
        still = sorted({f.fault for f in stand if f.fault in wanted})
        ill = {s.symptom for s in symptoms.read(run).symptoms if s.cls == "ill"}
        own = {s.symptom for s in self.report.symptoms if s.explained_by in wanted}
        sick = sorted(ill & self.ill & own)
        if not sick and own & _THROWN_OFF and (high := _ends_above_start(run)):
            sick = [high]
        fresh = sorted({f.fault for f in stand if f.fault in {n.fault for n in new}})
        fresh += sorted(newly_ill(self.run, self.ill, ill))
        crashed = run.ending.kind == "exception"
        short = self._too_short(run) if not still else ""
        told = _told(still, sick, fresh, short, len(wanted))
        if crashed:
            told = f"(the patched script ends with {run.ending.exception} at {run.ending.site})"
        gone = not (still or short or crashed)
        return Tried(gone, tuple(sick), tuple(fresh), told, measured(self.run, run, told))

    def _patched_run(self, wanted: Iterable[str]) -> Run:
        base = self.run
        limit: int | None = None
        if base.ending.kind == "exception":
            limit = base.num_steps + PAST_THE_SYMPTOM
        elif base.ending.kind != "finished":
            limit = base.num_steps or None
        seconds = max(LEAST_SECONDS, PATIENCE * base.seconds)
        run = self.bench.execute(
            diagnosing(max_steps=limit), seconds=seconds, progress=self.progress
        )
        needs = {s for c in faults.all_checks() if c.fault in wanted for s in c.needs}
        if "twin_run" in needs:
            run = with_twin(self.bench, run, lambda text: None)
        if "source_change" in needs:
            run = with_source_change(self.bench, run, lambda text: None)
        return run

    def _too_short(self, run: Run) -> str:
        """A patched run that ends before the symptom showed has shown nothing."""
        base = self.run
        if base.ending.kind == "exception":
            ended = run.ending.kind in ("finished", "budget") or run.num_steps > base.num_steps
            return "" if ended else f"it ended after {run.num_steps} steps ({run.ending.kind})"
        last = max(
            (s for f in self.report.findings for e in f.evidence for s in e.steps), default=0
        )
        least = min(base.num_steps, last + 1)
        if run.ending.kind in ("finished", "budget") or run.num_steps >= least:
            return ""
        return f"it ended after {run.num_steps} of {base.num_steps} steps ({run.ending.kind})"


def newly_ill(before: Run, known: set[str], now: set[str]) -> set[str]:
    """Illness that the patch may have brought. A script that died was not watched long enough to
    show a slow one, and a few steps past its death judge none: only a loss that is thrown off.
    """
    fresh = now - known
    return fresh & _THROWN_OFF if before.ending.kind == "exception" else fresh


def set_off(findings: Iterable[Finding], known: Collection[str]) -> list[Finding]:
    """What fires now and did not before; not what a report would only suspect."""
    return [
        f
        for f in findings
        if f.fault not in known and faults.as_far_as_known(f).status != "suspected"
    ]


def _ends_above_start(run: Run) -> str:
    losses = run.losses
    ending = level(part(losses, 0.75, 1.0)).mean
    if not len(losses) or not ending > ABOVE_START * abs(float(losses[0])):
        return ""
    return f"the loss begins at {losses[0]:.4g} and ends at {ending:.4g}"


def merged(patches: Sequence[Patch]) -> tuple[tuple[Any, Any], ...]:
    """All patches on the files as they are; EditRefused where two of them overlap."""
    sources = {old.file: old for patch in patches for old, _ in patch.files}
    edits = tuple(edit for patch in patches for edit in patch.change.edits)
    return changed(list(sources.values()), Change("", edits))


def _not_healed(patch: Patch, tried: Tried) -> Evidence:
    return Evidence(f"tried, and it did not heal: {patch.change.summary} {tried.text}")


def _without_patch(fix: Fix | None) -> Fix | None:
    return None if fix is None else Fix(fix.summary)


def _told(still: list[str], sick: list[str], fresh: list[str], short: str, num: int) -> str:
    if short:
        return f"({short})"
    fault = "the fault is" if num == 1 else "the faults are"
    gone = f"{fault} gone" if not still else f"still there: {', '.join(still)}"
    ill = f"; still ill: {', '.join(sick)}" if sick else ""
    new = f"; new: {', '.join(fresh)}" if fresh else "; nothing new fired"
    return f"{gone}{ill}{new}"


def measured(before: Run, after: Run, text: str) -> dict[str, Any]:
    """Baseline against patched, in plain numbers."""
    return {
        "result": text,
        "on": f"the same seed, {after.num_steps} steps",
        "before": _numbers(before),
        "after": _numbers(after),
        "curves": [loss_curve(before, "as it is"), loss_curve(after, "with the patch")],
    }


def _numbers(run: Run) -> dict[str, Any]:
    ending = level(part(run.losses, 0.75, 1.0)).mean
    found: dict[str, Any] = {"steps": run.num_steps, "ending": run.ending.kind}
    if math.isfinite(ending):
        found["loss"] = round(ending, 6)
    elif run.num_steps:
        found["loss"] = "nan"
    found["losses"] = _curve(run)
    _, values, _ = validation_curve(run)
    if len(values):
        found["evaluation"] = float(values[-1])
    return found


def _curve(run: Run) -> list[float]:
    losses = run.losses
    width = min(CURVE_POINTS, len(losses))
    cuts = [round(i * len(losses) / width) for i in range(width + 1)] if width else []
    return [round(float(losses[a:b].mean()), 6) for a, b in pairwise(cuts) if b > a]
