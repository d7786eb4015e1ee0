"""Parameters that do not require gradients although an optimizer was told to train them

## What it sees
Parameters with requires_grad=False that an optimizer holds. Fires when a whole parameter group of
the optimizer is frozen: somebody gave these parameters a learning rate of their own, so they were
to be trained. That holds just as well where it is the only group, and the run trains nothing at
all. Frozen parameters in a group beside trained ones are likely when they still are as
they were drawn (nothing was loaded, trained or copied before: a frozen block of random weights
serves nobody) and else only suspected, since passing model.parameters() after freezing on purpose
is common. A line that assigns an attribute that is almost spelled requires_grad (any object takes
it, nothing happens) is named first. A module that carries requires_grad = True as an attribute of
its own while all parameters in it are frozen was meant to be unfrozen: modules take any attribute
and hand none of them on. Frozen layers that no optimizer holds count when they still are
as they were drawn and the loss has hardly moved (under a tenth in 30 steps or more), since some
trainers leave frozen parameters out by themselves; while the rest learns on top of them nothing is
said. From step 0.

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
before; an average of another model's weights is written at every step, so its size changes;
random features, and bases of adapters that only demonstrate the method, are left out of the
optimizer and the rest learns on top of them. A group that is unfrozen later in the run gets
gradients then and is silent; gradients of an earlier stage, under another optimizer, do not count.

## References
Embedding.from_pretrained freezes by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

import numpy as np

from sawbones.evidence import exact, finding
from sawbones.evidence.limits import TINY
from sawbones.evidence.limits import model as limits
from sawbones.schema import Finding, Fix, Run, Site, Tensor
from sawbones.stats.fresh_weights import ever_trained, has_gradient, is_fresh
from sawbones.stats.series import end_level, finite, start_level
from sawbones.trace.locate import locate
from sawbones.trace.made_lines import built_at, made_at
from sawbones.trace.source_lines import marked_lines, numbers_equal

NEEDS = ("tensors", "optimizers")
USES = ("modules", "made_tensors", "source_lines", "source_numbers")
EXPLAINS = (
    "optimizer.missing-params",
    "optimizer.lr-too-low",
    "model.detached-graph",
    "evaluation.collapsed-prediction",
)
EXPERIMENT = None
MIN_STEPS = 30  # before which a loss that stands still says nothing
WORD = "requires_grad"
_TABLES = ("Embedding", "EmbeddingBag")  # these often come ready made


def check(run: Run) -> Iterator[Finding]:
    if idle := _switched_in_vain(run):
        yield _finding(
            run,
            idle,
            "proven",
            title="requires_grad = True was set on modules, whose "
            f"{len(idle)} parameters stay frozen",
        )
        return
    groups: dict[tuple[int, int], list[Tensor]] = {}
    for tensor in run.tensors:
        if tensor.optimizer >= 0 and tensor.in_model:
            groups.setdefault((tensor.optimizer, tensor.group), []).append(tensor)
    frozen = {
        key: [t for t in own if not t.requires_grad and not _changes(run, t)]
        for key, own in groups.items()
    }
    whole = [key for key, own in groups.items() if len(frozen[key]) == len(own)]
    alive = any(len(frozen[key]) < len(own) for key, own in groups.items())
    held = [t for own in frozen.values() for t in own]
    partly = [t for t in held if len(t.shape) >= 2 and not ever_trained(run, t)]
    outside = [
        t
        for t in run.tensors
        if t.in_model and t.optimizer < 0 and not t.requires_grad and len(t.shape) >= 2
    ]
    if whole and (alive or run.num_steps):
        yield _finding(run, [t for key in whole for t in frozen[key]], "proven", whole)
    elif partly and alive:
        layers = [t for t in partly if t.owner not in _TABLES]
        sure = bool(layers) and all(_is_untouched(run, t) for t in layers)
        yield _finding(run, partly, "likely" if sure else "suspected")
    else:
        layers = [t for t in outside if t.owner not in _TABLES]
        if len(layers) >= 2 and all(_is_untouched(run, t) for t in layers) and _is_stuck(run):
            yield _finding(run, outside, "likely")


def _switched_in_vain(run: Run) -> list[Tensor]:
    """Frozen parameters of modules that have requires_grad = True as an attribute of their own."""
    idle: dict[int, Tensor] = {}
    for module in run.modules:
        if module.settings.get(WORD) is not True:
            continue
        prefix = f"{module.path}." if module.path else ""
        inside = [t for t in run.tensors if t.in_model and t.name.startswith(prefix)]
        if not any(t.requires_grad for t in inside):
            idle.update((t.index, t) for t in inside)
    return list(idle.values())


def _misspelt(run: Run) -> list[Site]:
    """Lines that set something like `param.required_grad`, or write over the method
    `requires_grad_`, to turn gradients on.
    """
    found = []
    for row in run.source_lines:
        name, code = row.name, row.site.code
        alike = SequenceMatcher(None, name.lower(), WORD).ratio()
        if row.kind != "assign" or name == WORD or limits.SPELLING.undercut_by(alike):
            continue
        if re.search(rf"\.{re.escape(name)}\s*=(?!=)\s*(?!False\b)", code) and not re.search(
            rf"\bself\.{re.escape(name)}\b", code
        ):
            found.append(row.site)
    return found


def _is_untouched(run: Run, tensor: Tensor) -> bool:
    return not ever_trained(run, tensor) and is_fresh(run, tensor) and not _is_adapted(run, tensor)


def _is_stuck(run: Run) -> bool:
    """The trained part gets gradients and yet the loss is about where it began."""
    norms = finite(run.steps.get("grad_norm", np.empty(0)))
    if len(finite(run.losses)) < MIN_STEPS or not len(norms) or float(np.median(norms)) <= 0:
        return False
    begin, end = start_level(run.losses), end_level(run.losses)
    return begin > 0 and limits.LOSS_UNMOVED.undercut_by(abs(begin - end) / begin)


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
    size = min(tensor.shape)
    small = [t for t in beside if min(t.shape) < size]
    pairs = ((a, b) for a in small for b in small if a is not b and min(a.shape) == min(b.shape))
    return any(tensor.shape[0] in a.shape and tensor.shape[1] in b.shape for a, b in pairs)


def _changes(run: Run, tensor: Tensor) -> bool:
    """Trained after all, or written by the script itself, as an average of another model's weights
    is: an optimizer leaves alone what has no gradient.
    """
    sizes = run.statistics.get("param_l2")
    known = sizes[:, tensor.index] if sizes is not None else np.empty(0)
    known = known[np.isfinite(known) & (known >= 0)]
    moved = len(known) > 1 and limits.WEIGHTS_MOVED.passed_by(
        np.ptp(known) / max(known.max(), TINY)
    )
    return bool(moved) or _trained_by_its_own(run, tensor)


def _trained_by_its_own(run: Run, tensor: Tensor) -> bool:
    """By the optimizer that holds it now: one of an earlier stage says nothing of this one."""
    by = run.steps.get("optimizer")
    if by is None:
        return False
    steps = run.tensor_steps
    known = (steps >= 0) & (steps < len(by))
    rows = [
        bool(ok and by[step] == tensor.optimizer) for ok, step in zip(known, steps, strict=True)
    ]
    return has_gradient(run, tensor, np.array(rows, dtype=bool))


def _finding(
    run: Run,
    frozen: list[Tensor],
    at_most: str,
    groups: list[tuple[int, int]] | None = None,
    title: str = "",
) -> Finding:
    total = sum(t.numel for t in frozen)
    text = (
        f"{len(frozen)} parameters ({total} values, {frozen[0].name}, ...) have requires_grad=False"
    )
    if groups:
        own = {o.index: o.groups for o in run.optimizers}
        rates = [row.get("lr") for o, g in groups for row in own.get(o, ())[g : g + 1]]
        shown = ", ".join(f"{rate:g}" for rate in rates if rate)
        text += (
            f" and fill {len(groups)} parameter groups of the optimizer by themselves (lr {shown})"
        )
    held = {t.index for t in run.tensors if t.optimizer >= 0}
    although = " although the optimizer holds them" if frozen[0].optimizer >= 0 else ""
    title = title or f"{len(frozen)} parameters of the model are frozen{although}"
    if held and held == {t.index for t in frozen}:
        title = f"Nothing is trained: all {len(frozen)} parameters of the optimizer are frozen"
    trained_by = {o for o, _ in groups or ()}
    optimizers = [o.site for o in run.optimizers if o.index in trained_by]
    return finding(
        title,
        locate(*_misspelt(run)[:1], *_where(run, frozen), *optimizers[:1]),
        (exact(text, len(frozen), signal="tensors", steps=(0,)),),
        Fix(
            "Leave requires_grad on for these parameters (freeze=False, or "
            "module.requires_grad_(True) for all of a module), or take them out of the optimizer."
        ),
        at_most=at_most,
    )


def _where(run: Run, frozen: list[Tensor]) -> tuple[Site, ...]:
    switched = made_at(run, ("requires_grad_",), {t.shape for t in frozen})
    built = built_at(run)
    made = [site for t in frozen if (site := built.get(t.name.rpartition(".")[0]))]
    blocks = {tuple(p for p in t.name.split(".") if p.isdigit())[:1] for t in frozen} - {()}
    counted = numbers_equal(run, float(len(blocks))) if switched and blocks else []
    numbers = [site for site in counted if _is_setting(site)]
    # A module takes any attribute: `block.requires_grad = True` says nothing to its parameters.
    assigned = marked_lines(run, "assign", names=(WORD,))
    idle = [site for site in assigned if re.search(r"=\s*True\b", site.code)]
    off = [site for site in assigned if re.search(r"=\s*False\b", site.code)]
    return locate(
        *(idle if len(idle) == 1 else ()),
        *(switched or off)[:1],
        *(numbers if len(numbers) == 1 else made[:1]),
    )


def _is_setting(site: Site) -> bool:
    """A line that does nothing but give a number its name."""
    return (
        re.fullmatch(r"[\w.]+(\s*:\s*\w+)?\s*=\s*[\d._e+-]+\s*,?\s*(#.*)?", site.code) is not None
    )
