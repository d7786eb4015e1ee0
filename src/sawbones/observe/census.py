"""The census: which models ran, which parameters they have, and which optimizer holds what."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from sawbones.observe.origins import built_at
from sawbones.observe.sites import SiteFinder, is_user_file
from sawbones.schema import Module, Optimizer, Site, Tensor

_SETTINGS = (
    "eps",
    "p",
    "momentum",
    "num_features",
    "num_embeddings",
    "embedding_dim",
    "padding_idx",
    "in_features",
    "out_features",
    "in_channels",
    "out_channels",
    "kernel_size",
    "num_heads",
    "embed_dim",
    "batch_first",
    "hidden_size",
    "input_size",
    "num_layers",
    "bidirectional",
    "track_running_stats",
    "affine",
    "normalized_shape",
    "negative_slope",
    "inplace",
    "dim",
    "is_causal",
    "nhead",
    "norm_first",
    "training",
    "reduction",
    "ignore_index",
    "label_smoothing",
    "requires_grad",  # no setting of any layer: a plain attribute, where a script has set one
)
_MAX_MODULES = 4000
_MAX_SEEN = 10_000


def has_parameters(module: nn.Module) -> bool:
    """Looks into the modules themselves: a class may define parameters() in its own way, as a list
    for instance.
    """
    return any(p is not None for inner in module.modules() for p in inner._parameters.values())


def unwrap(module: nn.Module) -> nn.Module:
    """The user's model behind torch.compile and DataParallel wrappers."""
    while True:
        inner = getattr(module, "_orig_mod", None)
        if inner is None and type(module).__name__ in ("DistributedDataParallel", "DataParallel"):
            inner = getattr(module, "module", None)
        if not isinstance(inner, nn.Module):
            return module
        module = inner


class Census:
    def __init__(self, sites: SiteFinder) -> None:
        self._sites = sites
        self._roots: list[weakref.ref[nn.Module]] = []
        self._seen: dict[
            int, weakref.ref[nn.Module]
        ] = {}  # top-level modules, with a reference: identities are used again
        self._is_model: dict[int, tuple[weakref.ref[nn.Module], bool]] = {}
        self.compiled = False
        self._optimizers: list[weakref.ref[torch.optim.Optimizer]] = []
        self._optimizer_ids: dict[int, int] = {}
        self._built_at: dict[int, Site | None] = {}
        self._tensor_ids: dict[int, int] = {}
        self._tensor_refs: list[weakref.ref[torch.Tensor]] = []
        # What was last known: by the end of a script the function that held model and optimizer has
        # often returned.
        self._known_tensors: dict[int, Tensor] = {}
        self.is_new = (
            False  # an optimizer was seen for the first time since the last census was written
        )
        self._copies: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    # models

    def saw_root(self, module: nn.Module) -> bool:
        """True when this top-level module is new and counts as a model: it, or what it wraps, has
        parameters.
        """
        seen = self._seen.get(id(module))
        if seen is not None and seen() is module:
            return False
        if len(self._seen) > _MAX_SEEN:
            self._seen.clear()
        self._seen[id(module)] = weakref.ref(module)
        inner = unwrap(module)
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            self.compiled = True
        if not has_parameters(inner):
            return False
        if any(root is inner for root in self.roots()):
            return False
        known = {id(m) for root in self.roots() for m in root.modules()}
        if id(inner) in known:
            return False  # a part of a model that is known already
        mine = {id(m) for m in inner.modules()}
        self._roots = [r for r in self._roots if (m := r()) is not None and id(m) not in mine]
        self._roots.append(weakref.ref(inner))
        self._is_model.clear()
        return True

    def roots(self) -> list[nn.Module]:
        return [module for ref in self._roots if (module := ref()) is not None]

    def is_model(self, module: nn.Module) -> bool:
        """Remembered: it is asked on every call, and walks over all modules.

        A loss or a metric that the model holds, and that its training step calls after the model,
        is none: it is given answers and labels, and learns nothing.
        """
        known = self._is_model.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        inner = unwrap(module)
        answer = has_parameters(inner) and any(
            inner is root or any(inner is m for m in root.modules()) for root in self.roots()
        )
        if len(self._is_model) > _MAX_SEEN:
            self._is_model.clear()
        self._is_model[id(module)] = (weakref.ref(module), answer)
        return answer

    def is_no_model(self, module: nn.Module) -> bool:
        """Known for a loss, or another call without parameters."""
        known = self._is_model.get(id(module))
        return known is not None and known[0]() is module and not known[1]

    # optimizers and parameters

    def built(self, optimizer: torch.optim.Optimizer, site: Site | None) -> None:
        found = self._optimizer_ids.get(id(optimizer))
        if (
            found is None or self._optimizers[found]() is not optimizer
        ):  # not one that was built at this address before
            self._built_at[id(optimizer)] = site
        self.optimizer_index(optimizer)

    def optimizer_index(self, optimizer: torch.optim.Optimizer) -> int:
        found = self._optimizer_ids.get(id(optimizer))
        if found is None or self._optimizers[found]() is not optimizer:
            if (wrapped := self._wrapped_by(optimizer)) is not None:
                return wrapped
            found = self._optimizer_ids[id(optimizer)] = len(self._optimizers)
            self._optimizers.append(weakref.ref(optimizer))
            self.is_new = True
        return found

    def _wrapped_by(self, optimizer: torch.optim.Optimizer) -> int | None:
        """Trainers wrap optimizers in one that is an Optimizer as well and hands out the very same
        list of groups.
        """
        groups = getattr(optimizer, "param_groups", None)
        for index, ref in enumerate(self._optimizers):
            known = ref()
            if (
                groups is not None
                and known is not None
                and known is not optimizer
                and known.param_groups is groups
            ):
                return index
        return None

    def optimizers(self) -> list[torch.optim.Optimizer]:
        return [optimizer for ref in self._optimizers if (optimizer := ref()) is not None]

    def holders(self) -> dict[int, int]:
        """Parameter, by identity -> the optimizer that holds it."""
        return {
            id(p): self.optimizer_index(optimizer)
            for optimizer in self.optimizers()
            for group in optimizer.param_groups
            for p in group["params"]
        }

    def tensor_index(self, tensor: torch.Tensor) -> int:
        found = self._tensor_ids.get(id(tensor))
        if found is None or self._tensor_refs[found]() is not tensor:
            found = self._tensor_ids[id(tensor)] = len(self._tensor_refs)
            self._tensor_refs.append(weakref.ref(tensor))
        return found

    def takes_the_place(self, new: torch.Tensor, old: torch.Tensor) -> None:
        """A parameter that the script has made anew keeps its number."""
        found = self._tensor_ids[id(new)] = self.tensor_index(old)
        self._tensor_refs[found] = weakref.ref(new)

    def trainable(self) -> list[torch.Tensor]:
        return [p for root in self.roots() for p in root.parameters() if p.requires_grad]

    def note_loose_gradients(self, facts: dict[str, Any]) -> None:
        """Adds those of now to those of before."""
        known = set(facts.get("loose_gradients", ()))
        facts["loose_gradients"] = sorted(known | self.loose_gradients())

    def loose_gradients(self) -> set[int]:
        """Trainable parameters of the models that have a gradient although no optimizer holds
        them.
        """
        held = set(self.holders())
        loose = [p for p in self.trainable() if id(p) not in held and p.grad is not None]
        copied = self._copied_from_trained(held) if loose else set()
        return {self.tensor_index(p) for p in loose if id(p) not in copied}

    def _copied_from_trained(self, held: set[int]) -> set[int]:
        """Parameters of whole models that began as a copy of a trained one: target networks,
        refreshed by copying, not by steps.
        """
        trained = [
            list(root.parameters())
            for root in self.roots()
            if any(id(p) in held for p in root.parameters())
        ]
        for root in self.roots():
            mine = list(root.parameters())
            if any(id(p) in held for p in mine) or root in self._copies:
                continue
            if any(_same_values(mine, theirs) for theirs in trained):
                self._copies.add(root)
        return {id(p) for root in self._copies for p in root.parameters()}

    # records

    def named(self) -> Iterator[tuple[str, torch.Tensor, nn.Module]]:
        roots = self.roots()
        for number, root in enumerate(roots):
            prefix = f"{type(root).__name__}{number}." if len(roots) > 1 else ""
            for path, module in root.named_modules():
                for name, parameter in module.named_parameters(recurse=False):
                    yield prefix + (f"{path}.{name}" if path else name), parameter, module

    def tensor_records(self) -> list[Tensor]:
        held: dict[int, tuple[int, int, float]] = {}
        for optimizer in self.optimizers():
            index = self.optimizer_index(optimizer)
            for g, group in enumerate(optimizer.param_groups):
                decay = group.get("weight_decay", 0.0)
                for p in group["params"]:
                    held[id(p)] = (
                        index,
                        g,
                        float(decay) if isinstance(decay, (int, float)) else 0.0,
                    )
                    self.tensor_index(p)
        named: dict[int, tuple[str, nn.Module]] = {}
        for name, parameter, module in self.named():
            named.setdefault(id(parameter), (name, module))
            self.tensor_index(parameter)
        records = []
        for index, ref in enumerate(self._tensor_refs):
            tensor = ref()
            before = self._known_tensors.get(index)
            if tensor is None:
                records.append(
                    before or Tensor(index, f"gone.{index}", (), "", False, "", -1, in_model=False)
                )
                continue
            name, owner = named.get(id(tensor), ("", None))
            if owner is None and before is not None and before.in_model and not named:
                name = before.name  # the model is gone, its tensor is not
            optimizer_index, in_group, decay = held.get(id(tensor), (-1, -1, 0.0))
            if (
                optimizer_index < 0
                and before is not None
                and before.optimizer >= 0
                and self._is_gone(before.optimizer)
            ):
                optimizer_index, in_group, decay = (
                    before.optimizer,
                    before.group,
                    before.weight_decay,
                )
            records.append(
                Tensor(
                    index,
                    name or f"tensor.{index}",
                    tuple(tensor.shape),
                    str(tensor.dtype).removeprefix("torch."),
                    tensor.requires_grad,
                    type(owner).__name__
                    if owner is not None
                    else before.owner
                    if before is not None and not named
                    else "",
                    optimizer_index,
                    in_group,
                    decay,
                    owner is not None or bool(before is not None and before.in_model and not named),
                )
            )
        self._known_tensors = {
            record.index: record for record in records if not record.name.startswith("gone.")
        }
        return records

    def _is_gone(self, optimizer: int) -> bool:
        return optimizer < len(self._optimizers) and self._optimizers[optimizer]() is None

    def optimizer_records(self) -> list[Optimizer]:
        records = []
        for optimizer in self.optimizers():
            groups = []
            for group in optimizer.param_groups:
                plain = {k: _plain(v) for k, v in group.items() if k != "params"}
                plain["num_params"] = len(group["params"])
                groups.append(plain)
            builtin = type(optimizer).__module__.startswith("torch.")
            records.append(
                Optimizer(
                    self.optimizer_index(optimizer),
                    type(optimizer).__name__,
                    {k: _plain(v) for k, v in optimizer.defaults.items()},
                    tuple(groups),
                    self._built_at.get(id(optimizer)),
                    builtin,
                )
            )
        return records

    def module_records(self) -> list[Module]:
        records: list[Module] = []
        roots = self.roots()
        for number, root in enumerate(roots):
            prefix = f"{type(root).__name__}{number}" if len(roots) > 1 else ""
            for path, module in root.named_modules():
                if len(records) >= _MAX_MODULES:
                    return records
                own = list(module.parameters(recurse=False))
                settings = {k: _plain(vars(module)[k]) for k in _SETTINGS if k in vars(module)}
                full = ".".join(part for part in (prefix, path) if part)
                trainable = sum(p.requires_grad for p in own)
                definition = self._definition(module)
                records.append(
                    Module(
                        full,
                        type(module).__name__,
                        settings,
                        len(own),
                        trainable,
                        definition,
                        built_at(module),
                    )
                )
        return records

    def _definition(self, module: nn.Module) -> Site | None:
        try:
            code = type(module).forward.__code__
        except AttributeError:
            return None
        if not is_user_file(code.co_filename):
            return None
        return Site(
            self._sites.shown(code.co_filename),
            code.co_firstlineno,
            f"{type(module).__name__}.forward",
        )


def _same_values(mine: list[nn.Parameter], theirs: list[nn.Parameter]) -> bool:
    if [p.shape for p in mine] != [p.shape for p in theirs]:
        return False
    if not all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True)):
        return False
    return any(
        bool((p != p.flatten()[0]).any()) for p in mine if p.numel() > 1
    )  # not just both filled with one number


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 and value.device.type == "cpu" else None
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return str(value)[:80] if not inspect.isroutine(value) else None
