"""Which causes a symptom may have, and the one change that would tell each from the others.

A rival is tried only where it can matter: no autocast, nothing to switch off. Those whose remedy is
their own come first; then the learning rate, which heals much that is not its fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sawbones.schema import Run


@dataclass(frozen=True)
class Rival:
    """One possible cause and the change that would heal it. `own`: hardly anything else is healed
    by that change, so it goes before the general ones; `unless` names changes that must not heal
    as well before it is believed. A cause that the catalogue has no name for has only a layer.
    """

    asked: str
    fault: str  # of the catalogue, or a layer alone
    title: str
    fix: str
    at: str = "step"  # the event whose line is shown: step, backward, forward
    own: bool = False
    unless: tuple[str, ...] = ()
    applies: Callable[[Run], bool] = lambda run: True

    @property
    def layer(self) -> str:
        return self.fault.split(".")[0]

    @property
    def is_named(self) -> bool:
        return "." in self.fault


def _autocast(run: Run) -> bool:
    return any(e.data.get("autocast") for e in run.of_kind("forward"))


def _in_eval_mode(run: Run) -> bool:
    """A call with gradients that is not in training mode."""
    return any(e.data.get("grad") and not e.data.get("training") for e in run.of_kind("forward"))


def _drops(run: Run) -> bool:
    return any(float(m.settings.get("p") or 0.0) > 0 for m in run.modules if "Drop" in m.cls)


def _decays(run: Run) -> bool:
    return any(group.get("weight_decay") for o in run.optimizers for group in o.groups)


def _scheduled(run: Run) -> bool:
    """The rate moves, or is not the one that the optimizer was built with."""
    rates = run.steps.get("lr", np.zeros(0))
    built = [o.defaults.get("lr") for o in run.optimizers]
    return bool(len(rates)) and (bool(np.ptp(rates)) or float(rates[0]) not in built)


def _starts_at_once(run: Run) -> bool:
    """No warm-up: the first rate is the largest."""
    rates = run.steps.get("lr", np.zeros(0))
    return bool(len(rates)) and bool(rates[0] == np.max(rates))


# As torch has them; a setting that nobody touched cannot be what is wrong with it.
_USUAL = {"betas": [0.9, 0.999], "eps": 1e-8, "alpha": 0.99, "rho": 0.9}


def _own_moments(run: Run) -> bool:
    """Betas, eps or momentum that somebody chose."""
    for optimizer in run.optimizers:
        for group in optimizer.groups if optimizer.builtin else ():
            chosen = [n for n, v in _USUAL.items() if n in group and _as_list(group[n]) != v]
            if chosen or float(group.get("momentum") or 0.0) > _LARGEST_USUAL_MOMENTUM:
                return True
    return False


_LARGEST_USUAL_MOMENTUM = 0.9


def _as_list(value: object) -> object:
    return list(value) if isinstance(value, tuple | list) else value


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
    applies=_autocast,
)
_IN_TRAINING_MODE = Rival(
    "train-mode",
    "loop.train-in-eval-mode",
    "The model trains in evaluation mode: in training mode the run is healed",
    "Call model.train() before each training epoch.",
    "forward",
    own=True,
    applies=_in_eval_mode,
)
_HELD_RATE = Rival(
    "constant-lr",
    "optimizer.schedule",
    "The schedule keeps the run from learning: the learning rate that the optimizer was built "
    "with heals it",
    "Let the schedule reach that rate: look at its first value, its unit and its length.",
    own=True,
    unless=("lr=0.1",),
    applies=_scheduled,
)
_WARMED_UP = Rival(
    "warm-up",
    "optimizer.schedule",
    "A warm-up is missing: with one the same learning rate works",
    "Let the learning rate rise over the first tenth of the run.",
    own=True,
    unless=("lr=0.1",),
    applies=_starts_at_once,
)
_USUAL_MOMENTS = Rival(
    "default-moments",
    "optimizer.bad-moments",
    "Betas, eps or momentum do not fit the run: the defaults heal it",
    "Leave betas, eps and momentum at their defaults (momentum at most 0.9).",
    own=True,
    unless=("lr=0.1",),
    applies=_own_moments,
)
_RESET_WEIGHTS = Rival(
    "default-init",
    "model.bad-init",
    "The initialisation is what hurts: torch's own heals the run",
    "Leave the layers at their own initialisation, or scale it by the width of the layer.",
    "forward",
    own=True,
    unless=("lr=0.1",),
)
_NO_DECAY = Rival(
    "no-decay",
    "optimizer",
    "Weight decay holds the model down: without it the run is healed",
    "Use less weight decay.",
    own=True,
    applies=_decays,
)
_NO_DROPOUT = Rival(
    "no-dropout",
    "model",
    "Dropout keeps the model from learning: without it the run is healed",
    "Use less dropout.",
    "forward",
    own=True,
    applies=_drops,
)

# In the order in which they are tried.
BATTERIES: dict[str, tuple[Rival, ...]] = {
    "non-finite": (
        _SMALLER,
        _CLIPPED,
        _STANDARDISED,
        _FULL_PRECISION,
        _USUAL_MOMENTS,
        _CLEARED_GRADIENTS,
        _WARMED_UP,
        _RESET_WEIGHTS,
    ),
    "diverges": (
        _SMALLER,
        _CLIPPED,
        _CLEARED_GRADIENTS,
        _USUAL_MOMENTS,
        _STANDARDISED,
        _MUCH_SMALLER,
        _WARMED_UP,
        _RESET_WEIGHTS,
    ),
    "does-not-learn": (
        _IN_TRAINING_MODE,
        _HELD_RATE,
        _USUAL_MOMENTS,
        _NO_DECAY,
        _NO_DROPOUT,
        _LARGER,
        _STANDARDISED,
        _SMALLER,
        _RESET_WEIGHTS,
        _MUCH_LARGER,
        _WARMED_UP,
    ),
}
