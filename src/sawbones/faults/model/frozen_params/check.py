"""Parameters that do not require gradients although an optimizer was told to train them

## What it sees
Parameters with requires_grad=False that an optimizer holds. Fires when a whole parameter group of
the optimizer is frozen: somebody gave these parameters a learning rate of their own, so they were
to be trained. Frozen parameters in a group beside trained ones are likely when they still are as
they were drawn (nothing was loaded, trained or copied before: a frozen block of random weights
serves nobody) and else only suspected, since passing model.parameters() after freezing on purpose
is common. They are likely, too, when the source assigns an attribute that is almost spelled
requires_grad: any object takes it, nothing happens. Frozen layers that no optimizer holds count
when they still are as they were drawn and the loss has hardly moved (under a tenth in 30 steps or
more), since some trainers leave frozen parameters out by themselves; while the rest learns on top
of them they are only suspected. From step 0.

## Why it matters
The optimizer skips them without a word; the block stays at its first values.

## Looks like
No gradient and no update for a whole block; the learning rate of its group has no effect.

## Example
    emb = nn.Embedding.from_pretrained(vectors)
    optimizer = Adam([{"params": emb.parameters(), "lr": 1e-4}, {"params": head.parameters()}])

## Use instead
    emb = nn.Embedding.from_pretrained(vectors, freeze=False)
    optimizer = Adam([{"params": emb.parameters(), "lr": 1e-4}, {"params": head.parameters()}])

## Confirm it
The optimizer's own groups and the parameters' flags are the proof.

## False alarms
Frozen backbones, adapters, teachers and target networks hold weights that were trained or loaded
before; random features, and bases of adapters that only demonstrate the method, are left out of the
optimizer and the rest learns on top of them. A group that is unfrozen later in the run gets
gradients then and is silent; gradients of an earlier stage, under another optimizer, do not count.

## References
Embedding.from_pretrained freezes by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import numpy as np

from sawbones.schema import NO_GRADIENT, Evidence, Finding, Fix, Run, Site, Tensor
from sawbones.stats.data_lines import marked_lines
from sawbones.stats.failures import numbers_equal
from sawbones.stats.loss_calls import as_site, places
from sawbones.stats.series import end_level, finite, start_level

NEEDS = ("tensors", "optimizers")
EXPLAINS = (
    "optimizer.missing-params",
    "optimizer.lr-too-low",
    "model.detached-graph",
    "evaluation.collapsed-prediction",
)
EXPERIMENT = None
HARDLY, ENOUGH_STEPS = 0.1, 30
WORD = "requires_grad"
_DRAWING = (
    "normal_",
    "uniform_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "xavier_uniform_",
    "xavier_normal_",
    "trunc_normal_",
    "orthogonal_",
    "randn",
    "rand",
)


def check(run: Run) -> Iterator[Finding]:
    groups: dict[tuple[int, int], list[Tensor]] = {}
    for tensor in run.tensors:
        if tensor.optimizer >= 0 and tensor.in_model:
            groups.setdefault((tensor.optimizer, tensor.group), []).append(tensor)
    frozen = {
        key: [t for t in own if not t.requires_grad and not _trained_by_its_own(run, t)]
        for key, own in groups.items()
    }
    whole = [key for key, own in groups.items() if len(frozen[key]) == len(own)]
    alive = any(len(frozen[key]) < len(own) for key, own in groups.items())
    if whole and alive:
        yield _finding(run, [t for key in whole for t in frozen[key]], whole, "proven")
        return
    misspelt = _misspelt(run)
    held = [t for own in frozen.values() for t in own]
    if misspelt and held and alive:
        yield _finding(run, held, [], "likely", misspelt)
        return
    partly = [
        t for own in frozen.values() for t in own if len(t.shape) >= 2 and not _ever_trained(run, t)
    ]
    if partly and alive:
        layers = [
            t for t in partly if t.owner not in ("Embedding", "EmbeddingBag")
        ]  # tables often come ready made
        sure = bool(layers) and all(_is_fresh(run, t) and not _is_adapted(run, t) for t in layers)
        yield _finding(run, partly, [], "likely" if sure else "suspected")
        return
    outside = [
        t
        for t in run.tensors
        if t.in_model and t.optimizer < 0 and not t.requires_grad and len(t.shape) >= 2
    ]
    layers = [t for t in outside if t.owner not in ("Embedding", "EmbeddingBag")]
    if len(layers) >= 2 and all(_is_untouched(run, t) for t in layers):
        yield _finding(run, outside, [], "likely" if _is_stuck(run) else "suspected")


def _misspelt(run: Run) -> list[Site]:
    """Lines that set something like `param.required_grad`, or write over the method
    `requires_grad_`, to turn gradients on.
    """
    found = []
    for row in run.facts.get("source_lines") or ():
        name, code = str(row.get("name") or ""), str(row.get("code") or "")
        if (
            row.get("kind") != "assign"
            or name == WORD
            or SequenceMatcher(None, name.lower(), WORD).ratio() < 0.85
        ):
            continue
        if re.search(rf"\.{re.escape(name)}\s*=(?!=)\s*(?!False\b)", code) and not re.search(
            rf"\bself\.{re.escape(name)}\b", code
        ):
            found.append(Site(row["file"], row["line"], row["function"], code))
    return found


def _is_untouched(run: Run, tensor: Tensor) -> bool:
    return (
        not _ever_trained(run, tensor) and _is_fresh(run, tensor) and not _is_adapted(run, tensor)
    )


def _is_stuck(run: Run) -> bool:
    """The trained part gets gradients and yet the loss is about where it began."""
    losses, norms = finite(run.losses), finite(run.steps.get("grad_norm", np.empty(0)))
    if len(losses) < ENOUGH_STEPS or not len(norms) or float(np.median(norms)) <= 0:
        return False
    begin, end = start_level(run.losses), end_level(run.losses)
    return begin > 0 and abs(begin - end) < HARDLY * begin


def _is_fresh(run: Run, tensor: Tensor) -> bool:
    """Still as it was drawn: nothing was loaded, and neither it nor another tensor of its name and
    shape was ever trained.
    """
    if run.of_kind("load"):
        return False
    rows = [r for r in run.facts.get("data_ops") or () if r.get("op") in _DRAWING]
    built = {m.path: m.built for m in run.modules}
    parts = tensor.name.split(".")
    homes = {site for count in range(1, len(parts)) if (site := built.get(".".join(parts[:count])))}
    drawn = any(
        tuple(r.get("shape") or ()) == tensor.shape or as_site(r.get("site")) in homes for r in rows
    )
    copied = any(
        row.get("op") in ("copy_", "load_state_dict") for row in run.facts.get("data_ops") or ()
    )
    last = tensor.name.rpartition(".")[2]
    trained = any(
        t.shape == tensor.shape
        and t.name.endswith(last)
        and _ever_trained(run, t)
        and _elsewhere(t, tensor)
        for t in run.tensors
    )
    return drawn and not copied and not trained


def _is_adapted(run: Run, tensor: Tensor) -> bool:
    """Two trained matrices of one small rank stand beside it: in front of its outputs and behind
    its inputs.
    """
    if len(tensor.shape) != 2:
        return False
    home = tensor.name.rpartition(".")[0].rpartition(".")[0]
    beside = [
        t
        for t in run.tensors
        if len(t.shape) == 2 and t.requires_grad and home and t.name.startswith(home)
    ]
    small = [t for t in beside if min(t.shape) < min(tensor.shape)]
    pairs = ((a, b) for a in small for b in small if a is not b and min(a.shape) == min(b.shape))
    return any(tensor.shape[0] in a.shape and tensor.shape[1] in b.shape for a, b in pairs)


def _elsewhere(one: Tensor, other: Tensor) -> bool:
    """In another model, of which this one may be a copy."""
    return (
        one.name.split(".")[0] != other.name.split(".")[0]
        and one.name.split(".")[1:] == other.name.split(".")[1:]
    )


def _ever_trained(run: Run, tensor: Tensor) -> bool:
    gradients = run.statistics.get("grad_l2")
    return (
        gradients is not None
        and gradients.shape[1] > tensor.index
        and bool((gradients[:, tensor.index] > NO_GRADIENT + 1.5).any())
    )


def _trained_by_its_own(run: Run, tensor: Tensor) -> bool:
    """By the optimizer that holds it now: one of an earlier stage says nothing of this one."""
    gradients, by = run.statistics.get("grad_l2"), run.steps.get("optimizer")
    if gradients is None or by is None or gradients.shape[1] <= tensor.index:
        return False
    now = np.array(
        [0 <= step < len(by) and by[step] == tensor.optimizer for step in run.tensor_steps],
        dtype=bool,
    )
    return bool((gradients[now, tensor.index] > NO_GRADIENT + 1.5).any())


def _finding(
    run: Run,
    frozen: list[Tensor],
    groups: list[tuple[int, int]],
    status: str,
    misspelt: Sequence[Site] = (),
) -> Finding:
    total = sum(t.numel for t in frozen)
    rates = [
        run.optimizers[o].groups[g].get("lr")
        for o, g in groups
        if o < len(run.optimizers) and g < len(run.optimizers[o].groups)
    ]
    text = (
        f"{len(frozen)} parameters ({total} values, {frozen[0].name}, ...) have requires_grad=False"
    )
    if groups:
        shown = ", ".join(f"{rate:g}" for rate in rates if rate)
        text += (
            f" and fill {len(groups)} parameter groups of the optimizer by themselves (lr {shown})"
        )
    return Finding(
        "model.frozen-params",
        status,
        {"proven": 0.93, "likely": 0.85}.get(status, 0.3),
        f"{len(frozen)} parameters of the model are frozen"
        + (" although the optimizer holds them" if frozen[0].optimizer >= 0 else ""),
        places(*misspelt[:1], *_where(run, frozen, groups)),
        (Evidence(text, "tensors", (0,), float(len(frozen)), 0.0),),
        Fix(
            "Leave requires_grad on for these parameters (freeze=False), or take them out "
            "of the optimizer."
        ),
    )


def _where(run: Run, frozen: list[Tensor], groups: list[tuple[int, int]]) -> tuple[Site, ...]:
    shapes = {t.shape for t in frozen}
    switched = [
        site
        for row in run.facts.get("data_ops") or ()
        if row.get("op") == "requires_grad_"
        and tuple(row.get("shape") or ()) in shapes
        and (site := as_site(row.get("site")))
    ]
    built = {m.path: m.built for m in run.modules}
    made = [site for t in frozen if (site := built.get(t.name.rpartition(".")[0]))]
    blocks = {tuple(p for p in t.name.split(".") if p.isdigit())[:1] for t in frozen} - {()}
    numbers = (
        [n for n in numbers_equal(run, float(len(blocks))) if _is_setting(n)]
        if switched and blocks
        else []
    )
    optimizer = (
        run.optimizers[groups[0][0]].site if groups and groups[0][0] < len(run.optimizers) else None
    )
    written = numbers if len(numbers) == 1 else []
    # A module takes any attribute: `block.requires_grad = True` says nothing to its parameters.
    assigned = marked_lines(run, "assign", names=("requires_grad",))
    idle = [site for site in assigned if re.search(r"=\s*True\b", site.code)]
    off = [site for site in assigned if re.search(r"=\s*False\b", site.code)]
    first = [*(idle if len(idle) == 1 else ()), *(switched or off)[:1]]
    return places(*first, *(written or made[:1] if switched else made[:1]), optimizer)


def _is_setting(site: Site) -> bool:
    """A line that does nothing but give a number its name."""
    return (
        re.fullmatch(r"[\w.]+(\s*:\s*\w+)?\s*=\s*[\d._e+-]+\s*,?\s*(#.*)?", site.code) is not None
    )
