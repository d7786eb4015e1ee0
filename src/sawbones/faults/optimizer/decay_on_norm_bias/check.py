"""Weight decay on normalisation gains and biases

## What it sees
The parameter groups: which tensors an optimizer holds with a weight decay above zero. Normalisation
gains (one-dimensional parameters of a module that normalises) and biases in such a group, together
with matrices, with a decay that somebody asked for: it differs from the default of the class. Step
0 is enough.

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
Adam over a whole network, which is common practice. Chosen decay on biases alone is mentioned at
most. A decay of 0 and groups by dimension stay silent.

## References
He et al., Bag of Tricks for Image Classification (2019), "no bias decay"; nanoGPT and every BERT
fine-tuning script split groups.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sawbones.schema import Evidence, Finding, Fix, Module, Optimizer, Run, Tensor
from sawbones.stats.protocol import sites_in

NEEDS = ("tensors", "optimizers", "modules")
EXPLAINS = ()
EXPERIMENT = None
STRONG = 0.02  # decoupled decay from here on is somebody's choice, not a default


def check(run: Run) -> Iterator[Finding]:
    normalising = {m.path: m for m in run.modules if _normalises(m)}
    for optimizer in run.optimizers:
        held = [
            t
            for t in run.tensors
            if t.optimizer == optimizer.index
            and t.in_model
            and t.requires_grad
            and t.weight_decay > 0
        ]
        vectors = [t for t in held if len(t.shape) == 1]
        matrices = [t for t in held if len(t.shape) >= 2]
        gains = [t for t in vectors if t.name.rpartition(".")[0] in normalising]
        if vectors and matrices and _is_chosen(optimizer, max(t.weight_decay for t in vectors)):
            yield _finding(run, optimizer, held, vectors, gains)


def _is_chosen(optimizer: Optimizer, decay: float) -> bool:
    decoupled = (
        optimizer.cls == "AdamW"
        or optimizer.defaults.get("decoupled_weight_decay") is True
        or not optimizer.builtin
    )
    return decoupled and decay != _default(optimizer) and decay >= STRONG


def _default(optimizer: Optimizer) -> float:
    return 0.01 if optimizer.cls == "AdamW" else 0.0


def _normalises(module: Module) -> bool:
    """Torch's own by their settings; a hand-written one by holding vectors only, and an epsilon or
    nothing else to do.
    """
    if any(key in module.settings for key in ("normalized_shape", "num_features")):
        return True
    return module.num_params in (1, 2) and "eps" in module.settings


def _finding(
    run: Run, optimizer: Optimizer, held: list[Tensor], vectors: list[Tensor], gains: list[Tensor]
) -> Finding:
    decay = max(t.weight_decay for t in vectors)
    sure = bool(gains)
    shrinkage = decay * float(np.nansum(run.steps.get("lr", np.zeros(0))))
    shown = ", ".join(t.name for t in (gains or vectors)[:3])
    what = "normalisation gains and biases" if gains else "biases"
    evidence = [
        Evidence(
            f"{len(vectors)} of {len(held)} decayed tensors are one-dimensional, {len(gains)} of them normalisation parameters "
            f"({shown}, ...)",
            "tensors",
            (0,),
            float(len(vectors)),
            0.0,
        ),
        Evidence(
            f"weight_decay={decay:g} in {optimizer.cls}, whose default is {_default(optimizer):g}",
            "optimizers",
            (),
            decay,
            0.0,
        ),
        Evidence(
            f"decay alone shrinks them by {1 - np.exp(-shrinkage):.2%} over this run",
            "steps",
            (),
            float(1 - np.exp(-shrinkage)),
            0.0,
        ),
    ]
    groups = sites_in(run, ("group",))
    places = (optimizer.site,) if optimizer.site else ()
    near = tuple(
        g
        for g in groups
        if optimizer.site
        and g.file == optimizer.site.file
        and abs(g.line - optimizer.site.line) <= 15
    )
    decayed = tuple(
        g
        for g in near
        if "weight_decay" in g.code and not g.code.rstrip("}, ]").endswith(("0.0", ": 0", "=0"))
    )
    return Finding(
        "optimizer.decay-on-norm-bias",
        "likely" if sure else "suspected",
        0.93 if sure else 0.4,
        f"Weight decay {decay:g} also acts on {what}",
        (*decayed[:1], *places),
        tuple(evidence),
        Fix(
            "Put parameters with fewer than two dimensions into a group of their own with "
            "weight_decay=0.0."
        ),
    )
