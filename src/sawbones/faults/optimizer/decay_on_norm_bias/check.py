"""Weight decay on normalisation gains and biases

## What it sees
The parameter groups: which tensors an optimizer holds with a weight decay above zero. Normalisation
gains (one-dimensional parameters of a module that normalises) in such a group, together with
matrices, with a decay that somebody asked for: at least twice the default of the class. It is
likely where another group is spared, so that somebody meant to tell them apart, or where decay
alone takes a tenth of the gains over the run; else it is a suspicion.

## Why it matters
Decay pulls gains to zero and so undoes the normalisation; biases carry no capacity that decay could
control. It costs some accuracy, quietly, and more the larger decay times LR times steps is.

## Looks like
Nothing is visibly wrong; the run ends a little worse than the published one, and norm weights drift
below 1.

## Example
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)

## Use instead
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    plain = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)

## Confirm it
The groups are the proof. How much it matters shows in the shrinkage that decay alone gives: LR x
decay, summed over the steps.

## False alarms
AdamW(model.parameters(), lr) decays everything by 0.01 because torch's default says so; that is
what most healthy scripts have, and nothing is said about it, nor about coupled decay of SGD and
Adam over a whole network, which is common practice, nor about a network without normalisation,
whose biases lose next to nothing. One decay for all parameters is a convention of many published
programs, and what it takes in a short run is lost in the noise: a suspicion at most. A decay of 0 and groups by dimension stay silent.

## References
He et al., Bag of Tricks for Image Classification (2019), "no bias decay"; nanoGPT and every BERT
fine-tuning script split groups.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.evidence import NothingToJudge, compared, context, finding
from sawbones.evidence.limits import optimizer as limits
from sawbones.schema import Finding, Fix, Module, Optimizer, Run, Site, Tensor
from sawbones.trace.locate import locate
from sawbones.trace.source_lines import calls_of

NEEDS = ("tensors", "optimizers", "modules")
USES = ("source_calls",)
EXPLAINS = ()
EXPERIMENT = None
ADAMW_DEFAULT = 1 / 100


def check(run: Run) -> Iterator[Finding]:
    decayed = [t for t in run.tensors if t.in_model and t.requires_grad and t.weight_decay > 0]
    if not any(t.optimizer >= 0 for t in decayed):
        raise NothingToJudge("no optimizer decays a parameter of the model")
    normalising = {m.path for m in run.modules if _normalises(m)}
    for optimizer in filter(_decouples, run.optimizers):
        held = [t for t in decayed if t.optimizer == optimizer.index]
        vectors = [t for t in held if len(t.shape) == 1]
        matrices = [t for t in held if len(t.shape) >= 2]
        decay = max((t.weight_decay for t in vectors), default=0)
        if matrices and limits.CHOSEN_DECAY.reached_by(decay):
            gains = [t for t in vectors if t.name.rpartition(".")[0] in normalising]
            if gains:
                yield _finding(run, optimizer, len(held), vectors, gains, decay)


def _decouples(optimizer: Optimizer) -> bool:
    return (
        optimizer.cls == "AdamW"
        or optimizer.defaults.get("decoupled_weight_decay") is True
        or not optimizer.builtin
    )


def _normalises(module: Module) -> bool:
    """Torch's own by their settings; a hand-written one by holding vectors only, and an epsilon or
    nothing else to do.
    """
    if any(key in module.settings for key in ("normalized_shape", "num_features")):
        return True
    return module.num_params in (1, 2) and "eps" in module.settings


def _spares_some(optimizer: Optimizer) -> bool:
    """Somebody has told parameters that decay from parameters that do not."""
    decays = {float(group.get("weight_decay") or 0) for group in optimizer.groups}
    return len(decays) > 1 and 0 in decays


def _finding(
    run: Run,
    optimizer: Optimizer,
    num_held: int,
    vectors: list[Tensor],
    gains: list[Tensor],
    decay: float,
) -> Finding:
    lost = float(1 - np.exp(-decay * np.nansum(run.steps.get("lr", np.zeros(0)))))
    spares = _spares_some(optimizer)
    default = ADAMW_DEFAULT if optimizer.cls == "AdamW" else 0
    shown = ", ".join(t.name for t in gains[:3])
    return finding(
        f"Weight decay {decay:g} also acts on normalisation gains and biases",
        locate(*_groups_near(run, optimizer)[:1], optimizer),
        (
            context(
                f"{len(vectors)} of {num_held} decayed tensors are one-dimensional, "
                f"{len(gains)} of them normalisation parameters "
                f"({shown}, ...)",
                signal="tensors",
                steps=(0,),
                value=len(vectors),
                expected=0,
            ),
            compared(
                f"weight_decay={decay:g} in {optimizer.cls}, whose default is {default:g}"
                + "; another group is spared" * spares,
                decay,
                limits.CHOSEN_DECAY,
                expected=0,
                signal="optimizers",
            ),
            context(
                f"decay alone shrinks them by {lost:.2%} over this run",
                signal="steps",
                value=lost,
                expected=0,
            ),
        ),
        Fix(
            "Put parameters with fewer than two dimensions into a group of their own with "
            "weight_decay=0.0."
        ),
        at_most="likely" if spares or limits.GAIN_LOST.reached_by(lost) else "suspected",
    )


def _groups_near(run: Run, optimizer: Optimizer) -> list[Site]:
    """Groups with a decay, written close to where the optimizer is made."""
    made = optimizer.site
    return [
        g
        for g in calls_of(run, ("group",))
        if made is not None
        and g.file == made.file
        and abs(g.line - made.line) <= 15
        and "weight_decay" in g.code
        and not g.code.rstrip("}, ]").endswith(("0.0", ": 0", "=0"))
    ]
