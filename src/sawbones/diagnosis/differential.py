"""The differential: an illness without a known cause, and the one change that heals it.

For each symptom there is an ordered battery of changes, the most telling first. Each is one re-run
from the same seed; how many there may be is said beforehand. A change that heals names its fault,
at most `likely`: many causes share a cure. One that changes nothing clears its layer. Where the
script is another run each time, a change has healed when runs without it stay ill (`placebo.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sawbones import symptoms
from sawbones.diagnosis.placebo import NUM_PLACEBOS, against_placebo, is_another_run_each_time
from sawbones.diagnosis.rivals import BATTERIES, Rival
from sawbones.evidence import compared, context, finding
from sawbones.evidence.limits import trials as limits
from sawbones.schema import Cleared, Evidence, Finding, Fix, Run, Site, Symptom, Verdict
from sawbones.trials.bench import Bench, ChildFailed
from sawbones.trials.menu import Asked, parse

MOST_RIVALS = 8
LEAST_SECONDS = 5.0  # of the budget: under that no child gets through its imports

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    findings: tuple[Finding, ...] = ()
    cleared: tuple[Cleared, ...] = ()
    notes: tuple[str, ...] = ()


def standing(found: Sequence[Symptom]) -> Symptom | None:
    """The first ill symptom without a cause that there is something to try for."""
    return next((s for s in found if s.stands and s.symptom in BATTERIES), None)


@dataclass
class _Search:
    """What was tried for one symptom so far."""

    bench: Bench
    run: Run
    symptom: Symptom
    say: Say
    healed: list[tuple[Rival, Verdict]] = field(default_factory=list)
    cleared: list[Cleared] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    heals: dict[str, Verdict | None] = field(default_factory=dict)  # None: it does not

    @property
    def over(self) -> bool:
        return self.bench.interrupted or self.bench.seconds_left < LEAST_SECONDS

    def healing(self, asked: str, layer: str) -> Verdict | None:
        """What this change showed if it heals; each is tried once."""
        if asked not in self.heals:
            self.heals[asked] = None
            verdict = self.tried(asked)
            if verdict is None:
                return None
            if verdict.outcome == "confirmed" and _gone(self.bench.latest, self.symptom):
                self.heals[asked] = self.without_chance(asked, verdict)
            elif verdict.outcome == "refuted":
                self.cleared.append(Cleared(layer, asked, verdict.result))
        return self.heals[asked]

    def without_chance(self, text: str, healed: Verdict) -> Verdict | None:
        """None where a run without the change is healed as well."""
        (asked,) = parse(text)

        def untreated() -> Verdict:
            verdict = asked.run(self.bench, self.run)
            gone = _gone(self.bench.latest, self.symptom)
            return replace(verdict, outcome="confirmed") if gone else verdict

        verdict = against_placebo(self.bench, untreated, self.run, healed)
        if verdict.outcome == "confirmed":
            return verdict
        self.notes.append(f"{text}: {verdict.result}")
        return None

    def tried(self, text: str) -> Verdict | None:
        (asked,) = parse(text)
        self.say(f"trying {_said(asked)}")
        try:
            return asked.run(self.bench, self.run)
        except ChildFailed:
            return None

    def consider(self, rival: Rival) -> bool:
        """True when this rival is the cause: its own remedy heals, and those that heal much else
        do not.
        """
        if any(self.heals.get(asked) for asked in rival.unless):
            return False  # it would not be believed
        if any(other.fault == rival.fault for other, _ in self.healed):
            return False  # named already, by a smaller change
        verdict = self.healing(rival.asked, rival.layer)
        if verdict is None:
            return False
        others = [a for a in rival.unless if not self.over and self.healing(a, "optimizer")]
        self.healed.append((replace(rival, own=rival.own and not others), verdict))
        return rival.own and not others


def seek(bench: Bench, run: Run, symptom: Symptom, say: Say) -> Outcome:
    rivals = [r for r in BATTERIES[symptom.symptom] if r.applies(run)][:MOST_RIVALS]
    classic = 3 if symptom.symptom == "does-not-learn" else 0
    repeats = 1 + NUM_PLACEBOS * is_another_run_each_time(run)
    most = repeats * (len(rivals) + any(r.unless for r in rivals)) + classic
    say(
        f"{symptom.symptom} has no known cause: at most {most} re-runs, about "
        f"{most * max(run.seconds, 1.0):.0f} s"
    )
    search = _Search(bench, run, symptom, say)
    fits = _fits(search, "overfit-one-batch") if classic else None
    for rival in rivals:
        if search.over:
            search.notes.append(
                f"{rival.asked} was not tried: no time left (--seconds N gives more)"
            )
        elif search.consider(rival):
            break
    if classic and not search.healed:
        tiny = _fits(search, "tiny-set") if fits and not search.over else None
        learns = _fits(search, "synthetic") if fits is not False and not search.over else None
        left = conclusion(fits, tiny, learns)
        search.notes += [left] if left else []
    return Outcome(_named(search), tuple(search.cleared), tuple(search.notes))


def _fits(search: _Search, asked: str) -> bool | None:
    verdict = search.tried(asked)
    if verdict is None or verdict.outcome == "open":
        return None
    fits = verdict.outcome == "confirmed"
    cleared = ("model", "loss", "optimizer") if fits else ("data", "pipeline")
    if asked != "tiny-set":
        search.cleared += [Cleared(layer, asked, verdict.result) for layer in cleared]
    elif fits:
        search.cleared += [Cleared("loop", asked, verdict.result)]
    return fits


def conclusion(fits: bool | None, tiny: bool | None, learns: bool | None) -> str:
    """What an engineer reads off the classic tests: one batch, a few batches, another task."""
    if fits is False:
        return "not even one batch is learned: what is left is the model, the loss or the optimizer"
    if learns is False:
        return (
            "a task that is known to be learnable is not learned: what is left is the model, the "
            "loss or the optimizer"
        )
    if tiny is False:
        return (
            "one batch is learned and a few batches are not: what is left is the data (labels, "
            "order of the samples) or the mode that the model is in"
        )
    if learns:
        return (
            "another task in the same shapes is learned and this one is not: what is left is the "
            "data or the pipeline (do inputs and labels belong together, are they noise?)"
        )
    if fits:
        return (
            "one batch is learned and the whole set is not: what is left is the data, or a model "
            "that is too small for them"
        )
    return ""


def _said(asked: Asked) -> str:
    return f"{asked.shown}: {asked.item.line}"


def _gone(cured: Run | None, symptom: Symptom) -> bool:
    """The symptom was looked for in the re-run, and is not there any more."""
    if cured is None:
        return False
    signs = symptoms.read(cured)
    there = {s.symptom for s in signs.symptoms} | {s.symptom for s in signs.could_not_see}
    return symptom.symptom not in there


def _named(search: _Search) -> tuple[Finding, ...]:
    """The cause whose own remedy healed; else the first general one, with the others beside it."""
    run, symptom, healed = search.run, search.symptom, search.healed
    if not healed:
        return ()
    rival, verdict = next((row for row in healed if row[0].own), healed[0])
    if not rival.is_named:
        search.notes.append(f"cured by {rival.asked}: {verdict.result}. {rival.fix}")
        return ()
    evidence: list[Evidence] = [
        compared(
            verdict.result,
            float(verdict.details.get("sigmas") or limits.HEALED.value),
            limits.HEALED,
            signal="trial",
        ),
        context(f"it explains: {symptom.text}", signal="symptom", steps=symptom.steps),
    ]
    others = [other.asked for other, _ in healed if other is not rival]
    if others:
        evidence.append(context(f"also healed by {', '.join(others)}", signal="trial"))
    tried = [f"{row.by}: {row.result}" for row in search.cleared]
    evidence += [context(f"changed nothing: {text}", signal="trial") for text in tried[:3]]
    found = finding(rival.title, _where(run, rival.at), evidence, Fix(rival.fix), at_most="likely")
    return (replace(found, fault=rival.fault, verdict=verdict),)


def _where(run: Run, at: str) -> tuple[Site, ...]:
    events = [e.site for e in run.of_kind(at) if e.site is not None]
    built = [o.site for o in run.optimizers if o.site is not None]
    sites = [*built, *events[:1]] if at == "step" else [*events[:1], *built[:1]]
    return tuple(dict.fromkeys(sites))
