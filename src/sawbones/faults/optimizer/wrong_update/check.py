"""A hand-written optimizer whose step is not the rule it claims

## What it sees
Of an optimizer whose `step` is the user's own code, or of parameters updated without one: values,
gradients and new values of a few entries over the first twelve steps. The change is compared with
SGD, momentum, Nesterov, Adagrad, RMSProp, Lion, Adam and AdamW at the hyperparameters of its
groups, and with the mistakes that are made in writing these down. Fires when one mistake explains
the change to 0.5 % and no right rule comes within 2 %; when a right rule fits but times the wrong
factor (minus one, the learning rate once more or not at all, the momentum, a missing 1 - beta); or
when a step, however late, makes NaN of finite values and gradients. Five steps are enough. Of an
update without an optimizer, also of new tensors in a loop of torch.func, the numbers that tensors
are multiplied by are read as well: one that changes from step to step is the learning rate at that
step, unless it has the form of a bias correction.

## Why it matters
The learning rate, the decay rates and everything known about them hold for the rule, not for what
is done instead: a missing bias correction makes the first steps several times too large, a state
shared by parameters mixes up their directions.

## Looks like
Training that is slower or less stable than with the optimizer of the same name in torch, needs
another learning rate, or climbs.

## Example
    exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    p.addcdiv_(exp_avg, exp_avg_sq.sqrt().add_(eps), value=-lr)

## Use instead
    exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    m, v = exp_avg / (1 - beta1**t), exp_avg_sq / (1 - beta2**t)
    p.addcdiv_(m, v.sqrt().add_(eps), value=-lr)

## Confirm it
No experiment: the recorded step is the wrong rule's, digit by digit.

## False alarms
A rule that is neither known as right nor as a mistake is left alone: LAMB, Adafactor, SAM, Muon,
clipping inside of the step. eps inside or outside of the root, decay coupled, decoupled or not
scaled by the rate, momentum as a sum or a mean are all right. Some published rules do without any
bias correction: where an option of the optimizer's own is switched off that is meant, and where it
keeps no count of its steps, which a correction needs, the finding is only suspected. Ascent with
`maximize` or with a loss that falls is meant. A wrong or missing correction is one number for each
step, and so is a schedule: beside a rate that changes it is told only where both corrections stand
apart, dividing by 1 - beta**t of the wrong moment. Optimizers of libraries are not looked at.

## References
Kingma and Ba, Adam (2015), algorithm 1; the notes on SGD in torch's documentation, where the two
forms of momentum differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sawbones.evidence import NothingToJudge, compared, exact, finding
from sawbones.evidence.limits import optimizer as limits
from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.schema.updates import Updates
from sawbones.stats.relative import relative_difference
from sawbones.stats.update_factors import (
    at_rates,
    corrections,
    decay_rates,
    off_at_any_rate,
    schedules,
)
from sawbones.stats.update_rules import (
    Fit,
    Moved,
    Rule,
    adam_rules,
    fits,
    momentum_rules,
    plain_rules,
    rms_rules,
    rounding,
)
from sawbones.trace.locate import locate

NEEDS = ("updates",)
USES = ("source_numbers",)
EXPLAINS = (
    "optimizer.lr-too-high",
    "optimizer.lr-too-low",
    "loop.exploding-gradients",
    "loop.loss-spike",
    "model.frozen-params",
    "evaluation.collapsed-prediction",
    "optimizer.schedule",
    "data.labels-misaligned",
    "model.unstable-norm",
    "loss.unstable-log",
    "model.bad-init",
    "model.dead-units",
)
EXPERIMENT = None
MIN_STEPS = 5  # a moving average and its correction differ only after a few
MIN_VALUES = 40  # by chance fewer fit one of some hundred rules
MOST_RATES = 6  # every pair of them gives a set of rules to try
# Names under which a group says that it remembers something from step to step.
MOMENTUM = ("momentum", "mu", "beta", "beta1")
NOT_RATES = (
    "lr",
    "weight_decay",
    "eps",
    "rho",
    "dampening",
    "lr_decay",
    "gamma",
    "trust_coefficient",
    "initial_lr",
)
UNCORRECTED = "Adam, no bias correction"  # a rule of stats/update_rules.py


def check(run: Run) -> Iterator[Finding]:
    judged = 0
    for record in run.updates:
        tensors = _moved(record)
        enough = (
            min((t.steps for t in tensors), default=0) >= MIN_STEPS
            and sum(t.change.size for t in tensors) >= MIN_VALUES
            and limits.ROUNDED_CHANGE.kept_by(rounding(tensors))
        )
        judged += enough
        # A mistake with a name says more than the NaN that it ends in.
        found = (_wrong(run, record, tensors) if enough else None) or _broke(run, record)
        if found is not None:
            yield found
            return
    if not judged:
        raise NothingToJudge("too few steps or values of the update, or lost in rounding")


def _broke(run: Run, record: Updates) -> Finding | None:
    """NaN or infinity out of finite values and gradients: no rule does that."""
    row = next((b for b in record.broke if limits.LARGEST_BEFORE.undercut_by(b.largest)), None)
    if row is None:
        return None
    zeros = f", {row.zero_gradients} of them where the gradient is 0" if row.zero_gradients else ""
    text = (
        f"step {row.step} makes {row.entries} entries of a parameter NaN or "
        f"infinite{zeros}; all was finite before"
    )
    return finding(
        "The optimizer's own step turns finite values into NaN",
        _where(run, record),
        (exact(text, row.entries, signal="updates", steps=(row.step,)),),
        Fix(
            "Keep the divisor away from zero: add eps to the root before dividing, count "
            "steps from 1, take no root below 0."
        ),
    )


def _moved(record: Updates) -> list[Moved]:
    hyper = record.hyper
    found = []
    for row in record.tensors:
        before, after, gradient = (
            np.asarray(values, np.float64) for values in (row.before, row.after, row.grad)
        )
        steps = min(len(before), len(hyper))
        known = all(np.all(np.isfinite(x)) for x in (before, after, gradient))
        if not steps or before.ndim != 2 or not known:
            continue
        groups = [h[row.group] if row.group < len(h) else {} for h in hyper[:steps]]
        lr = np.asarray([float(g.get("lr", 1)) for g in groups], np.float64)
        change = (after - before)[:steps]
        decay = float(groups[0].get("weight_decay") or 0)
        if np.any(gradient != 0) and np.any(change != 0):
            found.append(
                Moved(row.place, row.shape, gradient[:steps], before[:steps], change, lr, decay)
            )
    return found


def _group(record: Updates) -> Mapping[str, Any]:
    first = record.hyper[0]
    return first[0] if first else {}


def _betas(group: Mapping[str, Any]) -> tuple[float, float] | None:
    given = group.get("betas") or (group.get("beta1"), group.get("beta2"))
    pair = [float(b) for b in given[:2] if isinstance(b, int | float)]
    return (pair[0], pair[1]) if len(pair) == 2 and all(0 <= b < 1 for b in pair) else None


def _is_rate(value: float) -> bool:
    return limits.LEAST_RATE.passed_by(value) and value < 1


def _rates(run: Run, record: Updates) -> list[float]:
    """Decay rates that are written down for this optimizer; without an optimizer object, in the
    script.
    """
    group = _group(record)
    found = [v for k, v in group.items() if k not in NOT_RATES and isinstance(v, float)]
    if not any(map(_is_rate, found)):
        found += [*record.constants, *record.attributes.values()]
    if not group:
        found += decay_rates(record.factors)
        found += [number.value for number in run.source_numbers]
    usual = list(limits.USUAL_RATES)
    rates = list(dict.fromkeys(round(float(v), 9) for v in found if _is_rate(v)))
    if len(rates) > MOST_RATES:
        known = decay_rates(record.factors)
        usual = list(dict.fromkeys([*known[:2], *usual]))
        return [*usual, *[r for r in rates if r not in usual][:4]]
    return rates or usual


def _candidates(run: Run, record: Updates) -> list[Rule]:
    group = _group(record)
    given = group.get("eps")
    eps = float(given) if isinstance(given, int | float) and given else limits.USUAL_EPS
    betas = _betas(group)
    rates = _rates(run, record)
    rules = list(plain_rules(eps))
    pairs = (
        [betas] if betas else [(a, b) for a in rates for b in rates if a != b or len(rates) == 1]
    )
    for pair in pairs:
        rules += adam_rules(*pair, eps)
    for rate in [*(betas or ()), *rates]:
        if rate > 0:
            rules += momentum_rules(rate)
            rules += rms_rules(rate, eps)
    remembers = bool(betas and betas[0] > 0) or any(
        isinstance(group.get(k), float) and limits.LEAST_RATE.passed_by(group[k]) for k in MOMENTUM
    )
    if remembers:  # forgetting is a mistake here, although what is left is a rule of its own
        return [r for r in rules if r.keeps or (not r.right and (betas or "momentum" in r.name))]
    return [r for r in rules if r.keeps or r.right]


def _wrong(run: Run, record: Updates, tensors: Sequence[Moved]) -> Finding | None:
    ordered = fits(tensors, _candidates(run, record), record.num_params)
    right = next(f for f in ordered if f.rule.right and f.decay != "growing")
    wrong = next((f for f in ordered if not f.rule.right or f.decay == "growing"), None)
    # Where the change is mostly rounded away, a fit may be off by more.
    coarse = max(1, 3 * rounding(tensors) / limits.RULE_FITS.value)
    explained = [f for f in ordered if limits.RULE_FITS.kept_by(f.off / coarse)]
    claimed = "lr" in _group(record)
    if right in explained:
        forgets = wrong is not None and not wrong.rule.keeps and wrong in explained
        if wrong is not None and forgets and right.rule.name.startswith("RMSProp"):
            return _by_rule(run, record, tensors, wrong, right, coarse)
        fitting = [f for f in explained if f.rule.right]
        if not claimed or any(limits.SAME_FACTOR.kept_by(abs(f.scale - 1)) for f in fitting):
            return None
        return _by_factor(run, record, tensors, fitting)
    rates = [] if claimed else schedules(record.factors, _rates(run, record))
    if rates:
        hidden = limits.RULE_FITS.kept_by(_off_at_any_rate(run, record, tensors) / coarse)
        found = _scheduled(run, record, tensors, rates, hidden)
        if found is not None or hidden:
            return found
    if wrong is None or wrong not in explained or limits.RULE_MISSED.undercut_by(right.off):
        return None
    if right.off - 5 * max(wrong.off, limits.RULE_FITS.times(coarse)) < 0:
        return None
    if claimed and limits.SAME_FACTOR.passed_by(abs(wrong.scale - 1)):
        return None
    if wrong.rule.name == UNCORRECTED and record.switched_off:
        return None
    return _by_rule(run, record, tensors, wrong, right, coarse)


def _off_at_any_rate(run: Run, record: Updates, tensors: Sequence[Moved]) -> float:
    right = [rule for rule in _candidates(run, record) if rule.right]
    return min(off_at_any_rate(tensors, rule) for rule in right)


def _scheduled(
    run: Run, record: Updates, tensors: Sequence[Moved], rates: Sequence[Any], hidden: bool
) -> Finding | None:
    """A mistake that explains the change at rates which the update was seen to multiply by.

    `hidden`: a right rule would do so at rates of its own. Then it may be meant, folded into the
    number that is multiplied, unless both corrections stand apart from that.
    """
    coarse = max(1, 3 * rounding(tensors) / limits.RULE_FITS.value)
    told: Finding | None = None
    for series in rates:
        moved = at_rates(tensors, series)
        if moved is None:
            continue
        ordered = fits(moved, _candidates(run, record), record.num_params)
        right, wrong = (next(f for f in ordered if f.rule.right is r) for r in (True, False))
        if limits.RULE_MISSED.undercut_by(right.off):
            return None
        apart = len(corrections(record.factors, wrong.rule.rates)) == 2
        explains = limits.RULE_FITS.kept_by(wrong.off / coarse)
        exactly = limits.SAME_FACTOR.kept_by(abs(wrong.scale - 1))
        if explains and exactly and (apart or not hidden) and told is None:
            told = _by_rule(run, record, moved, wrong, right, coarse)
    return told


def _by_factor(
    run: Run, record: Updates, tensors: Sequence[Moved], fitting: Sequence[Fit]
) -> Finding | None:
    """A right rule, but times something that it is not multiplied by."""
    for fit in fitting:
        says = _factor(run, record, tensors, fit)
        if says is not None:
            steps = min(t.steps for t in tensors)
            text = (
                f"over {steps} steps the change is {fit.scale:.4g} times that of "
                f"{fit.rule.name}{_at(fit)} at the group's learning rate"
            )
            reading = exact(
                text,
                fit.scale,
                expected=1,
                within=limits.SAME_FACTOR.value,
                signal="updates",
                steps=range(steps),
            )
            return _finding(run, record, says, [reading])
    return None


def _factor(run: Run, record: Updates, tensors: Sequence[Moved], fit: Fit) -> str | None:
    lr = float(tensors[0].lr[0])
    known = list(fit.rule.scales)
    constant = bool(np.all(tensors[0].lr == lr)) and lr > 0
    if constant and limits.RATE_IS_NOT_ONE.passed_by(abs(lr - 1)):
        known += [
            (lr, "the learning rate is applied twice"),
            (1 / lr, "the learning rate is not applied"),
        ]
    if fit.scale < 0:
        if _group(record).get("maximize") or _falls(run):
            return None  # ascent is meant
        known = [(-1, "the sign is wrong: the step climbs the gradient")]
    return next(
        (
            says
            for factor, says in known
            if limits.SAME_FACTOR.kept_by(relative_difference(fit.scale, factor))
        ),
        None,
    )


def _falls(run: Run) -> bool:
    losses = run.losses[np.isfinite(run.losses)]
    third = len(losses) // 3
    return third > 0 and float(np.mean(losses[-third:]) - np.mean(losses[:third])) < 0


def _at(fit: Fit) -> str:
    return f" at {', '.join(f'{r:g}' for r in fit.rule.rates)}" if fit.rule.rates else ""


def _by_rule(
    run: Run, record: Updates, tensors: Sequence[Moved], fit: Fit, right: Fit, coarse: float
) -> Finding:
    steps = min(t.steps for t in tensors)
    says, rule = fit.rule.says, f"the rule with this mistake{_at(fit)}"
    if fit.decay == "growing":
        says, rule = "weights grow where they should decay", "a decay with the wrong sign"
    readings = [
        compared(
            f"over {steps} steps the change is that of {rule} up to {fit.off:.1e} of its size",
            fit.off,
            limits.RULE_FITS,
            below=True,
            expected=0,
            signal="updates",
            steps=range(steps),
        ),
        exact(
            f"the nearest right rule ({right.rule.name}) leaves {right.off:.1%} of it unexplained",
            right.off,
            within=limits.RULE_FITS.times(coarse),
            signal="updates",
        ),
    ]
    # Some published rules leave the correction out. A step that is counted is there to be used.
    meant = fit.rule.name == UNCORRECTED and not record.counts_steps
    first: list[Site | None] = []
    if limits.RULE_FITS.kept_by(_off_at_any_rate(run, record, tensors) / coarse):
        # no more than a number for each step is wrong: that of a correction
        first = [f.site for f in corrections(record.factors, fit.rule.rates)]
    return _finding(run, record, says, readings, "suspected" if meant else "proven", first)


def _finding(
    run: Run,
    record: Updates,
    says: str,
    readings: Sequence[Evidence],
    at_most: str = "proven",
    first: Sequence[Site | None] = (),
) -> Finding:
    return finding(
        f"{record.cls or 'The update'}: {says}",
        _where(run, record, first),
        readings,
        Fix(
            f"Correct the step ({says}), or use torch.optim's own. Its oracle: "
            "sawbones.oracles.optimizers."
        ),
        at_most=at_most,
    )


def _where(run: Run, record: Updates, first: Sequence[Site | None] = ()) -> tuple[Site, ...]:
    built = next((o.site for o in run.optimizers if o.index == record.optimizer), None)
    return locate(*first, *record.sites, record.step_site, built)[:4]
