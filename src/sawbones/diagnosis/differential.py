"""The differential: an illness without a known cause, and the one change that heals it.

For each symptom there is an ordered battery of changes, the most telling first. Each is one re-run
from the same seed; how many there may be is said beforehand. A change that heals names its fault,
at most `likely`: many causes share a cure. One that changes nothing clears its layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sawbones import symptoms
from sawbones.evidence import compared, context, finding
from sawbones.evidence.limits import trials as limits
from sawbones.schema import Cleared, Evidence, Finding, Fix, Run, Site, Symptom, Verdict
from sawbones.trials.bench import Bench, ChildFailed
from sawbones.trials.menu import Asked, parse

MOST_TRIALS = 6
LEAST_SECONDS = 5.0  # of the budget: under that no child gets through its imports

Say = Callable[[str], None]


@dataclass(frozen=True)
class Rival:
    """One possible cause and the change that would heal it. `own`: hardly anything else is healed
    by that change, so it goes before the general ones.
    """

    asked: str
    fault: str
    title: str
    fix: str
    at: str = "step"  # the event whose line is shown: step, backward, forward
    own: bool = False


_SMALLER = Rival(
    "lr=0.1",
    "optimizer.lr-too-high",
    "The learning rate is too high: a tenth of it heals the run",
    "Divide the learning rate by ten: that was tried and healed the run.",
)
_MUCH_SMALLER = replace(
    _SMALLER,
    asked="lr=0.01",
    title="The learning rate is far too high: a hundredth of it heals the run",
    fix="Divide the learning rate by a hundred: that was tried and healed the run.",
)
_LARGER = Rival(
    "lr=10",
    "optimizer.lr-too-low",
    "The learning rate is too low: ten times as much heals the run",
    "Multiply the learning rate by ten: that was tried and healed the run.",
)
_MUCH_LARGER = replace(
    _LARGER,
    asked="lr=100",
    title="The learning rate is far too low: a hundred times as much heals the run",
    fix="Multiply the learning rate by a hundred: that was tried and healed the run.",
)
_CLIPPED = Rival(
    "clip=1",
    "loop.exploding-gradients",
    "Gradients explode: clipping their norm to 1 heals the run",
    "Clip the gradients before the step: torch.nn.utils.clip_grad_norm_(parameters, 1.0).",
    "backward",
)
_CLEARED_GRADIENTS = Rival(
    "zero-grad",
    "loop.no-zero-grad",
    "Gradients are left over from earlier steps: clearing them heals the run",
    "Call zero_grad() once per optimizer step, before backward().",
    "backward",
    own=True,
)
_STANDARDISED = Rival(
    "standard-inputs",
    "data.unnormalized-input",
    "The scale of the inputs is what hurts: standardised inputs heal the run",
    "Standardise the inputs with mean and standard deviation of the training set.",
    "forward",
    own=True,
)
_FULL_PRECISION = Rival(
    "no-amp",
    "loop.amp-no-scaler",
    "Mixed precision is what hurts: the run is healed without it",
    "Scale the loss (torch.amp.GradScaler), use bfloat16, or keep the failing part in float32.",
    "backward",
    own=True,
)
_IN_TRAINING_MODE = Rival(
    "train-mode",
    "loop.train-in-eval-mode",
    "The model trains in evaluation mode: in training mode the run is healed",
    "Call model.train() before each training epoch.",
    "forward",
    own=True,
)

BATTERIES: dict[str, tuple[Rival, ...]] = {
    "non-finite": (_SMALLER, _CLIPPED, _STANDARDISED, _FULL_PRECISION, _CLEARED_GRADIENTS),
    "diverges": (_SMALLER, _CLIPPED, _CLEARED_GRADIENTS, _STANDARDISED, _MUCH_SMALLER),
    "does-not-learn": (_LARGER, _STANDARDISED, _SMALLER, _MUCH_LARGER, _IN_TRAINING_MODE),
}


@dataclass(frozen=True)
class Outcome:
    findings: tuple[Finding, ...] = ()
    cleared: tuple[Cleared, ...] = ()
    notes: tuple[str, ...] = ()


def standing(found: Sequence[Symptom]) -> Symptom | None:
    """The first ill symptom without a cause that there is something to try for."""
    return next((s for s in found if s.stands and s.symptom in BATTERIES), None)


def seek(bench: Bench, run: Run, symptom: Symptom, say: Say) -> Outcome:
    rivals = [r for r in BATTERIES[symptom.symptom] if _applies(run, r)][: MOST_TRIALS - 1]
    each = max(run.seconds, 1.0)
    say(
        f"{symptom.symptom} has no known cause: at most {len(rivals) + 1} re-runs, about "
        f"{(len(rivals) + 1) * each:.0f} s"
    )
    cleared: list[Cleared] = []
    notes: list[str] = []
    healed: list[tuple[Rival, Verdict]] = []
    if symptom.symptom == "does-not-learn":
        cleared += _fits_one_batch(bench, run, say)
    for rival in rivals:
        if bench.interrupted or bench.seconds_left < LEAST_SECONDS:
            notes.append(f"{rival.asked} was not tried: no time left (--seconds N gives more)")
            continue
        verdict = _tried(bench, run, rival.asked, say)
        if verdict is None or verdict.outcome == "open":
            continue
        if verdict.outcome == "confirmed" and _gone(bench.latest, symptom):
            healed.append((rival, verdict))
            if rival.own:
                break  # its remedy is its own: no later one could name another cause
        elif verdict.outcome == "refuted":
            item = parse(rival.asked)[0].item
            cleared.append(Cleared(item.layer, rival.asked, verdict.result))
    return Outcome(_named(run, symptom, healed, cleared), tuple(cleared), tuple(notes))


def _applies(run: Run, rival: Rival) -> bool:
    """Not worth a run: autocast that nobody switched on."""
    if rival is _FULL_PRECISION:
        return any(e.data.get("autocast") for e in run.of_kind("forward"))
    return True


def _fits_one_batch(bench: Bench, run: Run, say: Say) -> list[Cleared]:
    verdict = _tried(bench, run, "overfit-one-batch", say)
    if verdict is None or verdict.outcome == "open":
        return []
    fits = verdict.outcome == "confirmed"
    layer = "model, loss and optimizer" if fits else "data"
    return [Cleared(layer, "overfit-one-batch", verdict.result)]


def _tried(bench: Bench, run: Run, text: str, say: Say) -> Verdict | None:
    (asked,) = parse(text)
    say(f"trying {_said(asked)}")
    try:
        return asked.run(bench, run)
    except ChildFailed:
        return None


def _said(asked: Asked) -> str:
    return f"{asked.shown}: {asked.item.line}"


def _gone(cured: Run | None, symptom: Symptom) -> bool:
    """The symptom is not seen any more, where the re-run lets it be looked for."""
    if cured is None:
        return False
    return all(seen.symptom != symptom.symptom for seen in symptoms.read(cured).symptoms)


def _named(
    run: Run,
    symptom: Symptom,
    healed: Sequence[tuple[Rival, Verdict]],
    cleared: Sequence[Cleared],
) -> tuple[Finding, ...]:
    """The cause whose own remedy healed; else the first general one, with the others beside it."""
    if not healed:
        return ()
    rival, verdict = next((row for row in healed if row[0].own), healed[0])
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
    tried = [f"{row.by}: {row.result}" for row in cleared]
    evidence += [context(f"changed nothing: {text}", signal="trial") for text in tried[:3]]
    found = finding(rival.title, _where(run, rival.at), evidence, Fix(rival.fix), at_most="likely")
    return (replace(found, fault=rival.fault, verdict=verdict),)


def _where(run: Run, at: str) -> tuple[Site, ...]:
    events = [e.site for e in run.of_kind(at) if e.site is not None]
    built = [o.site for o in run.optimizers if o.site is not None]
    sites = [*built, *events[:1]] if at == "step" else [*events[:1], *built[:1]]
    return tuple(dict.fromkeys(sites))
