"""Which parameters learn, and how. Of a model and its optimizer, or of a recorded run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sawbones.schema import NO_GRADIENT, NOT_MEASURED, Run, Site, Tensor
from sawbones.stats.loss_calls import as_site
from sawbones.testing.catalogue import free_of
from sawbones.testing.wording import broken, shown, steps_taken

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

ADAPTIVE = ("Adam", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad")
HALF = ("float16", "bfloat16")


def assert_every_parameter_gets_gradient(
    model: nn.Module | Run,
    batch: Any = None,
    loss: Callable[[Any, Any], Any] | None = None,
    *,
    frozen: tuple[str, ...] = (),
) -> None:
    """A backward pass reaches every parameter that is meant to train: all but those whose names
    begin with one of `frozen`.

    Of a model: `loss(model, batch)` gives the scalar. Of a run: what the optimizer holds has
    gradients on and gets one.
    """
    if isinstance(model, Run):
        _gradients_in(model, frozen)
        return
    if loss is None:
        raise TypeError(
            "assert_every_parameter_gets_gradient needs loss(model, batch), which gives "
            "the scalar to start from"
        )
    saved = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    try:
        loss(model, batch).backward()
        without = {
            name: p
            for name, p in model.named_parameters()
            if p.grad is None and not name.startswith(frozen or ("\0",))
        }
    finally:
        for name, p in model.named_parameters():
            p.grad = saved[name]
    if without:
        off = [name for name, p in without.items() if not p.requires_grad]
        found = f"{len(without)} of {len(saved)} parameters get no gradient: {shown(list(without))}"
        raise broken(
            found + (f" ({len(off)} have requires_grad=False)" if off else ""),
            "a gradient for each",
        )


def _gradients_in(run: Run, frozen: tuple[str, ...]) -> None:
    steps_taken(run)
    held = [
        t
        for t in run.tensors
        if t.optimizer >= 0 and t.in_model and not t.name.startswith(frozen or ("\0",))
    ]
    off = [t for t in held if not t.requires_grad and not _ever(run, t)]
    if off:
        found = (
            f"{len(off)} of {len(held)} parameters in the optimizer have requires_grad=False: "
            f"{shown([t.name for t in off])}"
        )
        raise broken(
            found,
            "0",
            0,
            run.optimizers[off[0].optimizer].site
            if off[0].optimizer < len(run.optimizers)
            else None,
        )
    table = run.statistics.get("grad_l2")
    none = [
        t
        for t in held
        if table is not None
        and t.index < table.shape[1]
        and bool((table[:, t.index] == NO_GRADIENT).all())
    ]
    if none:
        cuts = [
            c for deep in run.deep for c in deep.probes.get("cuts") or () if c.get("learned_input")
        ]
        site = next(
            (
                s
                for c in sorted(cuts, key=lambda c: not c.get("feeds_loss"))
                if (s := as_site(c.get("site")))
            ),
            None,
        )
        found = (
            f"{len(none)} of {len(held)} parameters in the optimizer never get a gradient: "
            f"{shown([t.name for t in none])}"
        )
        raise broken(found, "0", 0, site)


def _ever(run: Run, tensor: Tensor) -> bool:
    table = run.statistics.get("grad_l2")
    if table is None or tensor.index >= table.shape[1]:
        return False
    column = table[:, tensor.index]
    return bool(((column != NOT_MEASURED) & (column != NO_GRADIENT)).any())


def assert_all_parameters_optimized(
    model: nn.Module | Run, optimizer: Optimizer | None = None
) -> None:
    """The optimizer holds every trainable parameter of the model, and nothing that is no longer the
    model's.
    """
    if isinstance(model, Run):
        free_of(model, "optimizer.missing-params", "optimizer.stale-params")
        return
    if optimizer is None:
        raise TypeError("assert_all_parameters_optimized needs the optimizer beside the model")
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    own = {id(p): name for name, p in model.named_parameters()}
    missing = [
        name for name, p in model.named_parameters() if p.requires_grad and id(p) not in held
    ]
    if missing:
        raise broken(
            f"{len(missing)} of {len(own)} parameters are in no parameter group: {shown(missing)}",
            "0",
        )
    stale = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in own]
    if stale:
        shapes = shown([str(tuple(p.shape)) for p in stale])
        raise broken(
            f"{len(stale)} tensors of the optimizer are not the model's (shapes {shapes})",
            "0: build it after the model",
        )


def assert_modules_registered(model: nn.Module | Run) -> None:
    """Everything with parameters that runs is part of the model: no layers in plain lists or
    dicts.
    """
    if isinstance(model, Run):
        free_of(model, "model.unregistered-module")
    else:
        _registered(model)


def _registered(model: nn.Module) -> None:
    from torch import nn

    known = {id(m) for m in model.modules()}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name in ("_modules", "_parameters", "_buffers") or not isinstance(
                value, (list, tuple, dict)
            ):
                continue
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                if (
                    isinstance(item, nn.Module)
                    and id(item) not in known
                    and any(True for _ in item.parameters())
                ):
                    at = f"{path}.{name}" if path else name
                    raise broken(
                        (
                            f"{at}[{key!r}] is a {type(item).__name__} in a plain "
                            f"{type(value).__name__}"
                        ),
                        "an nn.ModuleList",
                    )


def assert_decay_groups(model: nn.Module | Run, optimizer: Optimizer | None = None) -> None:
    """Weight decay acts on matrices only: parameters with fewer than two dimensions (gains, biases)
    have none.
    """
    if isinstance(model, Run):
        steps_taken(model)
        held = [
            t
            for t in model.tensors
            if t.optimizer >= 0 and t.in_model and t.requires_grad and t.weight_decay > 0
        ]
        rows = [(t.name, len(t.shape), t.weight_decay) for t in held]
        site = next((o.site for o in model.optimizers if o.site is not None), None)
    else:
        if optimizer is None:
            raise TypeError("assert_decay_groups needs the optimizer beside the model")
        names = {id(p): name for name, p in model.named_parameters()}
        groups = [g for g in optimizer.param_groups if g.get("weight_decay", 0.0) > 0]
        rows = [
            (names.get(id(p), "?"), p.dim(), float(g["weight_decay"]))
            for g in groups
            for p in g["params"]
        ]
        site = None
    vectors = [(name, decay) for name, dims, decay in rows if dims < 2]
    if vectors:
        name, decay = vectors[0]
        found = (
            f"{len(vectors)} of {len(rows)} decayed parameters are gains or biases: {name} "
            f"has weight_decay {decay:g}"
        )
        raise broken(found, "0 for parameters with fewer than two dimensions", None, site)


def assert_decoupled_decay(optimizer: Optimizer | Run) -> None:
    """No weight decay through an adaptive optimizer's gradient, where it is divided away again."""
    if isinstance(optimizer, Run):
        steps_taken(optimizer)
        seen: list[tuple[str, Sequence[Mapping[str, Any]], Site | None]] = [
            (o.cls, o.groups, o.site) for o in optimizer.optimizers
        ]
    else:
        seen = [(type(optimizer).__name__, optimizer.param_groups, None)]
    for cls, groups, site in seen:
        for number, group in enumerate(groups):
            decay = float(group.get("weight_decay") or 0.0)
            if cls in ADAPTIVE and decay > 0 and not group.get("decoupled_weight_decay"):
                raise broken(
                    f"{cls} adds weight_decay {decay:g} (group {number}) to the gradient",
                    f"{cls}W, or 0",
                    None,
                    site,
                )


def assert_float32_weights(model: nn.Module | Run) -> None:
    """The weights that the optimizer steps on are float32: small updates do not round to
    nothing.
    """
    if isinstance(model, Run):
        rows = [
            (t.name, t.dtype)
            for t in model.tensors
            if t.requires_grad and t.in_model and t.optimizer >= 0
        ]
    else:
        rows = [
            (name, str(p.dtype).removeprefix("torch."))
            for name, p in model.named_parameters()
            if p.requires_grad
        ]
    half = [(name, dtype) for name, dtype in rows if dtype in HALF]
    if half:
        raise broken(
            f"{len(half)} of {len(rows)} weights are {half[0][1]}: {shown([n for n, _ in half])}",
            "float32, and autocast",
        )
    if isinstance(model, Run):
        steps_taken(model)
