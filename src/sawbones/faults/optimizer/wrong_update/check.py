"""A hand-written optimizer whose step is not the rule it claims

## What it sees
Of an optimizer whose `step` is the user's own code, or of parameters updated without one: values,
gradients and new values of a few entries over the first twelve steps. The change is compared with
SGD, momentum, Nesterov, Adagrad, RMSProp, Lion, Adam and AdamW at the hyperparameters of its
groups, and with the mistakes that are made in writing these down. Fires when one mistake explains
the change to 0.5 % and no right rule comes within 2 %; when a right rule fits but times the wrong
factor (minus one, the learning rate once more or not at all, the momentum, a missing 1 - beta); or
when a step makes NaN of finite values and gradients. Five steps are enough.

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
scaled by the rate, momentum as a sum or a mean are all right. An optimizer that says in a setting
or a comment that it leaves the bias correction out does what it claims. Ascent with `maximize` or
with a loss that falls is meant. Optimizers of libraries are not looked at.

## References
Kingma and Ba, Adam (2015), algorithm 1; the notes on SGD in torch's documentation, where the two
forms of momentum differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Run, Site
from sawbones.stats.loss_calls import as_site
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

NEEDS = ("updates",)
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
MIN_STEPS = 5
MIN_VALUES = 40
EXACT = 0.005
ROUNDED = 0.03  # a change of which more than this is rounding says nothing
APART = 0.02
SAME_FACTOR = 0.03
USUAL = (0.9, 0.999, 0.99)
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


def check(run: Run) -> Iterator[Finding]:
    for record in run.facts.get("updates") or ():
        broken = _broke(run, record)
        if broken is not None:
            yield broken
            return
        tensors = _moved(record)
        steps = min((t.steps for t in tensors), default=0)
        if (
            steps < MIN_STEPS
            or sum(t.change.size for t in tensors) < MIN_VALUES
            or rounding(tensors) > ROUNDED
        ):
            continue
        found = _wrong(run, record, tensors)
        if found is not None:
            yield found
            return


def _broke(run: Run, record: Mapping[str, Any]) -> Finding | None:
    """NaN or infinity out of finite values and gradients: no rule does that."""
    row = next((b for b in record.get("broke") or () if b["largest"] < 1e6), None)
    if row is None:
        return None
    zeros = (
        f", {row['zero_gradients']} of them where the gradient is 0"
        if row["zero_gradients"]
        else ""
    )
    text = (
        f"step {row['step']} makes {row['entries']} entries of a parameter NaN or "
        f"infinite{zeros}; all was finite before"
    )
    return Finding(
        "optimizer.wrong-update",
        "proven",
        0.97,
        "The optimizer's own step turns finite values into NaN",
        _where(run, record),
        (Evidence(text, "updates", (int(row["step"]),), float(row["entries"]), 0.0),),
        Fix(
            "Keep the divisor away from zero: add eps to the root before dividing, count "
            "steps from 1, take no root below 0."
        ),
    )


def _moved(record: Mapping[str, Any]) -> list[Moved]:
    hyper = record["hyper"]
    found = []
    for row in record["tensors"]:
        before, after, gradient = (
            np.asarray(row[key], np.float64) for key in ("before", "after", "grad")
        )
        steps = min(len(before), len(hyper))
        if (
            not steps
            or before.ndim != 2
            or not all(np.all(np.isfinite(x)) for x in (before, after, gradient))
        ):
            continue
        groups = [h[row["group"]] if row["group"] < len(h) else {} for h in hyper[:steps]]
        lr = np.asarray([float(g.get("lr", 1.0)) for g in groups], np.float64)
        change = (after - before)[:steps]
        decay = groups[0].get("weight_decay", 0.0)
        if np.any(gradient != 0) and np.any(change != 0):
            place, shape = int(row["place"]), tuple(row["shape"])
            found.append(
                Moved(
                    place, shape, gradient[:steps], before[:steps], change, lr, float(decay or 0.0)
                )
            )
    return found


def _group(record: Mapping[str, Any]) -> Mapping[str, Any]:
    first = record["hyper"][0]
    return first[0] if first else {}


def _betas(group: Mapping[str, Any]) -> tuple[float, float] | None:
    given = group.get("betas") or (group.get("beta1"), group.get("beta2"))
    pair = [float(b) for b in given[:2] if isinstance(b, int | float)]
    return (pair[0], pair[1]) if len(pair) == 2 and all(0 <= b < 1 for b in pair) else None


def _rates(run: Run, record: Mapping[str, Any]) -> list[float]:
    """Decay rates that are written down for this optimizer; without an optimizer object, in the
    script.
    """
    group = _group(record)
    found = [v for k, v in group.items() if k not in NOT_RATES and isinstance(v, float)]
    if not any(0.3 < v < 1 for v in found):
        found += [*record["constants"], *record["attributes"].values()]
    if not group:
        found += [row["value"] for row in run.facts.get("numbers") or ()]
    rates = list(dict.fromkeys(round(float(v), 9) for v in found if 0.3 < v < 1))
    return (
        (rates or list(USUAL))
        if len(rates) <= 6
        else [*USUAL, *[r for r in rates if r not in USUAL][:4]]
    )


def _candidates(run: Run, record: Mapping[str, Any]) -> list[Rule]:
    group = _group(record)
    eps = (
        float(group.get("eps") or 1e-8) if isinstance(group.get("eps", 1e-8), int | float) else 1e-8
    )
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
        isinstance(group.get(k), float) and group[k] > 0.3 for k in MOMENTUM
    )
    if remembers:  # forgetting is a mistake here, although what is left is a rule of its own
        return [r for r in rules if r.keeps or (not r.right and (betas or "momentum" in r.name))]
    return [r for r in rules if r.keeps or r.right]


def _wrong(run: Run, record: Mapping[str, Any], tensors: Sequence[Moved]) -> Finding | None:
    rules = _candidates(run, record)
    ordered = fits(tensors, rules, int(record["num_params"]))
    claimed = "lr" in _group(record)
    right = next(f for f in ordered if f.rule.right and f.decay != "growing")
    wrong = next((f for f in ordered if not f.rule.right or f.decay == "growing"), None)
    exact = max(EXACT, 3 * rounding(tensors))
    if right.off <= exact:
        if (
            wrong is not None
            and wrong.rule.keeps is False
            and wrong.off <= exact
            and right.rule.name.startswith("RMSProp")
        ):
            return _finding(run, record, tensors, wrong, right)
        fitting = [f for f in ordered if f.rule.right and f.off <= exact]
        if not claimed or any(abs(f.scale - 1) <= SAME_FACTOR for f in fitting):
            return None
        factors = [
            (fit, found)
            for fit in fitting
            if (found := _factor(run, record, tensors, fit)) is not None
        ]
        return (
            _finding(run, record, tensors, factors[0][0], right, factors[0][1]) if factors else None
        )
    if wrong is None or wrong.off > exact or right.off < max(APART, 5 * wrong.off, 5 * exact):
        return None
    if claimed and abs(wrong.scale - 1) > SAME_FACTOR:
        return None
    if "correct" in wrong.rule.says and _says_uncorrected(record):
        return None
    return _finding(run, record, tensors, wrong, right)


def _says_uncorrected(record: Mapping[str, Any]) -> bool:
    settings = {**_group(record), **record["attributes"]}
    named = any(
        ("bias" in k.lower() or "correct" in k.lower()) and not v for k, v in settings.items()
    )
    return named or bool(record["uncorrected_on_purpose"])


def _factor(
    run: Run, record: Mapping[str, Any], tensors: Sequence[Moved], fit: Fit
) -> tuple[float, str] | None:
    """The right rule, but times something that it is not multiplied by."""
    lr = float(tensors[0].lr[0])
    known = list(fit.rule.scales)
    if np.all(tensors[0].lr == lr) and lr > 0 and abs(lr - 1) > 0.1:
        known += [
            (lr, "the learning rate is applied twice"),
            (1 / lr, "the learning rate is not applied"),
        ]
    if fit.scale < 0:
        ascent = bool(_group(record).get("maximize")) or _falls(run)
        return (
            None
            if ascent or abs(fit.scale + 1) > SAME_FACTOR
            else (-1.0, "the sign is wrong: the step climbs the gradient")
        )
    return next(((f, says) for f, says in known if abs(fit.scale / f - 1) <= SAME_FACTOR), None)


def _falls(run: Run) -> bool:
    losses = run.losses[np.isfinite(run.losses)]
    third = len(losses) // 3
    return third > 0 and float(np.mean(losses[-third:])) < float(np.mean(losses[:third]))


def _finding(
    run: Run,
    record: Mapping[str, Any],
    tensors: Sequence[Moved],
    fit: Fit,
    right: Fit,
    factor: tuple[float, str] | None = None,
) -> Finding:
    name = record["cls"] or "The update"
    steps = min(t.steps for t in tensors)
    at = f" at {', '.join(f'{r:g}' for r in fit.rule.rates)}" if fit.rule.rates else ""
    if factor:
        says = factor[1]
        text = (
            f"over {steps} steps the change is {fit.scale:.4g} times that of "
            f"{fit.rule.name}{at} at the group's learning rate"
        )
        evidence = [Evidence(text, "updates", tuple(range(steps)), fit.scale, 1.0)]
    else:
        says = "weights grow where they should decay" if fit.decay == "growing" else fit.rule.says
        rule = (
            "a decay with the wrong sign"
            if fit.decay == "growing"
            else f"the rule with this mistake{at}"
        )
        text = f"over {steps} steps the change is that of {rule} up to {fit.off:.1e} of its size"
        other = (
            f"the nearest right rule ({right.rule.name}) leaves {right.off:.1%} of it unexplained"
        )
        evidence = [
            Evidence(text, "updates", tuple(range(steps)), fit.off, 0.0),
            Evidence(other, "updates", (), right.off, 0.0),
        ]
    return Finding(
        "optimizer.wrong-update",
        "proven",
        0.96,
        f"{name}: {says}",
        _where(run, record),
        tuple(evidence),
        Fix(
            f"Correct the step ({says}), or use torch.optim's own. Its oracle: "
            "sawbones.oracles.optimizers."
        ),
    )


def _where(run: Run, record: Mapping[str, Any]) -> tuple[Site, ...]:
    built = next((o.site for o in run.optimizers if o.index == record["optimizer"]), None)
    places = [*(as_site(s) for s in record["sites"]), as_site(record["step_site"]), built]
    return tuple(dict.fromkeys(p for p in places if p is not None))[:4]
