"""What the first steps of an optimizer written by the user did: values before, gradients and values
after, of a few entries; and the first step, however late, that makes NaN of finite values.

Under `diagnose` only. The optimizers of libraries are not looked at: their rules are tested where
they live.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.signals.update_ops import Link, UpdateOps
from sawbones.observe.sites import is_user_file
from sawbones.observe.unseen import unseen
from sawbones.schema import Site

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

STEPS = 12
TENSORS = 10
ENTRIES = 48
# Options that torch's own optimizers have as well.
_USUAL = {
    name
    for cls in (torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop)
    for name in inspect.signature(cls).parameters
}
_SETTERS = {"requires_grad_", "retain_grad", "register_hook"}


class _Series:
    """One optimizer: the entries that are read, and what they were on each step."""

    def __init__(
        self,
        params: list[torch.Tensor],
        numbers: list[int],
        optimizer: torch.optim.Optimizer | None,
    ) -> None:
        self.optimizer = optimizer
        self.params = params
        chosen = _chosen(params, all_train=optimizer is None)
        self.rows: list[dict[str, Any]] = []
        self.entries: list[torch.Tensor] = []
        for place in chosen:
            p = params[place]
            stride = max(1, p.numel() // ENTRIES)
            self.entries.append(torch.arange(0, p.numel(), stride)[:ENTRIES])
            row = {
                "index": numbers[place],
                "place": place,
                "shape": list(p.shape),
                "dtype": str(p.dtype).removeprefix("torch."),
            }
            self.rows.append(
                {**row, "group": _group_of(optimizer, p), "before": [], "grad": [], "after": []}
            )
        self.hyper: list[list[dict[str, Any]]] = []
        self.taken = 0  # steps, of which the first few are kept
        self.broke: list[dict[str, Any]] = []
        self.pending: list[tuple[list[float], list[float]]] | None = None
        self.places: set[tuple[int, torch.Size]] = set()  # where the parameters lie in memory
        self.sites: Counter[Site] = Counter()
        self.counters: dict[str, float] | None = None  # numbers that go up by one with each step
        self.grads: list[torch.Tensor | None] = []
        self.links: list[list[Link]] = []  # step by step, how a new value was made

    @property
    def steps(self) -> int:
        return len(self.hyper)

    @property
    def on_host(self) -> bool:
        """Where every step can be asked for NaN without waiting for a device."""
        return all(p.device.type == "cpu" for p in self.params)

    def before(self, gradients: Sequence[torch.Tensor | None]) -> None:
        self.pending, self.grads = None, list(gradients)
        grads = [gradients[r["place"]] for r in self.rows]
        if any(g is None or g.layout is not torch.strided for g in grads):
            return
        self.pending = (
            [(self._read(i, r, False), self._read(i, r, True)) for i, r in enumerate(self.rows)]
            if self.steps < STEPS
            else []
        )
        self.places = {(p.data_ptr(), p.shape) for p in self.params}
        groups = self.optimizer.param_groups if self.optimizer is not None else []
        self._groups = [
            {k: v for k, v in g.items() if k != "params" and _is_plain(v)} for g in groups
        ]
        self._healthy = [
            bool(torch.isfinite(p.detach()).all()) and _finite(g)
            for p, g in zip(self.params, self.grads, strict=True)
        ]

    def after(self, params: list[torch.Tensor]) -> None:
        """`params` are others where the script has made them anew."""
        self.params = params
        if self.pending is None:
            self.grads = []
            return
        if self.steps < STEPS:
            self._keep(self.pending)
        self.pending = None
        self._look_for_breaks()
        self.taken, self.grads = self.taken + 1, []

    def _look_for_breaks(self) -> None:
        changed = zip(self.params, self.grads, self._healthy, strict=True)
        for place, (p, grad, was) in enumerate(changed):
            if was and not self.broke and not bool(torch.isfinite(p.detach()).all()):
                bad = ~torch.isfinite(p.detach())
                zeros = (
                    int((grad[bad] == 0).sum())
                    if grad is not None and grad.shape == bad.shape
                    else 0
                )
                largest = float(grad.abs().max()) if grad is not None else 0.0
                self.broke.append(
                    {
                        "step": self.taken,
                        "place": place,
                        "entries": int(bad.sum()),
                        "zero_gradients": zeros,
                        "largest": largest,
                    }
                )

    def _keep(self, pending: list[tuple[list[float], list[float]]]) -> None:
        for i, (row, (before, grad)) in enumerate(zip(self.rows, pending, strict=True)):
            row["before"].append(before)
            row["grad"].append(grad)
            row["after"].append(self._read(i, row, False))
        self.hyper.append(self._groups)
        now = _numbers_of(self.optimizer, self.params[0])
        if self.counters is None:
            self.counters = now
        else:
            past = self.counters
            self.counters = {k: v for k, v in now.items() if k in past and v == past[k] + 1}

    def _read(self, number: int, row: dict[str, Any], grad: bool) -> list[float]:
        tensor = self.params[row["place"]]
        source = self.grads[row["place"]] if grad else tensor
        assert source is not None
        return [
            float(v)
            for v in source.detach().reshape(-1)[self.entries[number]].to(torch.float64).tolist()
        ]


class UpdateLog:
    def __init__(self, recorder: Recorder) -> None:
        self._r = recorder
        self._series: dict[int, _Series | None] = {}
        self._watched: dict[int, _Series] = {}  # id of a parameter -> whose it is
        self._done: set[int] = set()
        self.ops = UpdateOps(recorder.sites)  # told of every operator while it is open

    def before(
        self,
        key: int,
        params: list[torch.Tensor],
        gradients: Sequence[torch.Tensor | None],
        optimizer: torch.optim.Optimizer | None,
    ) -> None:
        if key in self._done:
            return
        if key not in self._series:
            self._series[key] = self._begin(params, optimizer)
        series = self._series[key]
        if series is None or [id(p) for p in series.params] != [id(p) for p in params]:
            self._done.add(key)
            return
        series.before(gradients)
        if optimizer is None and series.pending:
            self.ops.begin()

    def _begin(
        self, params: list[torch.Tensor], optimizer: torch.optim.Optimizer | None
    ) -> _Series | None:
        if optimizer is not None and not _written_by_user(optimizer):
            return None
        usable = all(
            type(p) in (torch.Tensor, torch.nn.Parameter) and p.layout is torch.strided
            for p in params
        )
        if (
            not params
            or not usable
            or not any(p.dtype in (torch.float32, torch.float64) for p in params)
        ):
            return None
        series = _Series(params, [self._r.census.tensor_index(p) for p in params], optimizer)
        if self._r.journal is not None:
            self._watched.update({id(p): series for p in params})
            if self._wrote not in self._r.journal.on_write:
                self._r.journal.on_write.append(self._wrote)
        return series

    def after(self, key: int, params: list[torch.Tensor]) -> None:
        series = self._series.get(key)
        if series is None or key in self._done:
            return
        if self._watched:  # what was made anew has other identities, and theirs are used again
            self._watched = {i: s for i, s in self._watched.items() if s is not series}
            self._watched.update({id(p): series for p in params})
        series.after(params)
        if series.optimizer is None and len(series.links) < series.steps:
            series.links.append(self.ops.behind(params[series.rows[0]["place"]]))
        self.ops.end()
        if series.broke or (series.steps >= STEPS and not series.on_host):
            self._done.add(key)
        if series.broke or series.taken == STEPS:
            self.write()
        journal = self._r.journal
        if (
            all(s is None or s.steps >= STEPS or k in self._done for k, s in self._series.items())
            and journal is not None
        ):
            journal.on_write = [act for act in journal.on_write if act != self._wrote]

    def abandon(self) -> None:
        """There was no update by hand behind the latest backward pass."""
        self.ops.end()
        for series in self._series.values():
            if series is not None and series.optimizer is None:
                series.pending, series.grads = None, []

    def skipped(self, key: int) -> None:
        series = self._series.get(key)
        if series is not None:
            series.pending = None

    def _wrote(self, name: str, func: Any, args: Any, site: Any) -> None:
        """An operator that changes its first argument: does it belong to one of the parameters?"""
        if not args or name in _SETTERS:
            return
        waiting = [s for s in self._series.values() if s is not None and s.pending is not None]
        if not waiting:  # no update is under way
            return
        for target in args[0] if isinstance(args[0], (list, tuple)) else (args[0],):
            wrapped = torch._C._functorch.is_functorch_wrapped_tensor
            if not isinstance(target, torch.Tensor) or wrapped(target):
                continue  # torch.func marks what it differentiates
            series = self._watched.get(id(target)) or _by_storage(target, waiting)
            if (
                series is not None
                and series.pending is not None
                and (name != "__set__" or _sets_data(func))
            ):
                found = site()
                if found is not None:
                    series.sites[found] += 1
                return

    def write(self) -> None:
        found = [
            self._record(key, s)
            for key, s in self._series.items()
            if s is not None and (s.steps or s.broke)
        ]
        if found:
            self._r.writer.record("updates", 0, found)

    def _record(self, key: int, series: _Series) -> dict[str, Any]:
        optimizer = series.optimizer
        step = getattr(type(optimizer), "step", None) if optimizer is not None else None
        code = getattr(inspect.unwrap(step), "__code__", None) if step is not None else None
        site = (
            Site(self._r.sites.shown(code.co_filename), code.co_firstlineno, code.co_name)
            if code is not None
            else None
        )
        return {
            "optimizer": key,
            "cls": type(optimizer).__name__ if optimizer is not None else "",
            "num_params": len(series.params),
            "hyper": series.hyper,
            "constants": sorted(_constants(type(optimizer)) if optimizer is not None else ()),
            "attributes": {k: float(v) for k, v in vars(optimizer).items() if _is_number(v)}
            if optimizer is not None
            else {},
            "counts_steps": bool(series.counters),
            "switched_off": _switched_off(optimizer),
            "tensors": series.rows,
            "broke": series.broke,
            "sites": [site for site, _ in series.sites.most_common(4)] or _made_at(series.links),
            "factors": _factors(series.links),
            "step_site": site,
        }


def _made_at(links: list[list[Link]]) -> list[Site]:
    sites = [link.site for link in (links[0] if links else ()) if link.site is not None]
    return list(dict.fromkeys(sites))[:4]


def _factors(links: list[list[Link]]) -> list[dict[str, Any]]:
    """Where every step was made in the same way."""
    ways = [[(link.op, link.site) for link in step] for step in links]
    if not ways or any(way != ways[0] for way in ways):
        return []
    found = []
    for place, (op, site) in enumerate(ways[0]):
        values = [step[place].number for step in links]
        if all(value is not None for value in values):
            found.append({"op": op, "site": site, "values": values})
    return found


def _by_storage(target: torch.Tensor, waiting: list[_Series]) -> _Series | None:
    """`p.data` is another tensor over the same memory."""
    with unseen():
        place = (target.data_ptr(), target.shape)
    return next((series for series in waiting if place in series.places), None)


def _chosen(params: list[torch.Tensor], all_train: bool) -> list[int]:
    """Places of the tensors that are read: whole families of one shape, which a shared buffer would
    mix up, before others. What the arguments of a pure function are need not say that it trains.
    """
    usable = [
        i
        for i, p in enumerate(params)
        if (all_train or p.requires_grad)
        and p.numel()
        and p.dtype in (torch.float32, torch.float64)
    ]
    families: dict[tuple[int, ...], list[int]] = {}
    for i in usable:
        families.setdefault(tuple(params[i].shape), []).append(i)
    order = sorted(families.values(), key=lambda places: (len(places) == 1, places[0]))
    found: list[int] = []
    for places in order:
        if len(found) + len(places) <= TENSORS:
            found += places
    return sorted(found or usable[:TENSORS])


def _group_of(optimizer: torch.optim.Optimizer | None, parameter: torch.Tensor) -> int:
    groups = optimizer.param_groups if optimizer is not None else []
    return next((n for n, g in enumerate(groups) if any(p is parameter for p in g["params"])), 0)


def _written_by_user(optimizer: torch.optim.Optimizer) -> bool:
    step = inspect.unwrap(type(optimizer).step)
    code = getattr(step, "__code__", None)
    return code is not None and is_user_file(code.co_filename)


def _sets_data(func: Any) -> bool:
    return getattr(func, "__self__", None) is torch.Tensor.data


def _constants(cls: type) -> set[float]:
    """Floats written inside of the class's own methods."""
    found: set[float] = set()
    for value in vars(cls).values():
        code = getattr(inspect.unwrap(value) if callable(value) else value, "__code__", None)
        found.update(c for c in getattr(code, "co_consts", ()) if isinstance(c, float))
    return found


def _numbers_of(
    optimizer: torch.optim.Optimizer | None, parameter: torch.Tensor
) -> dict[str, float]:
    """Single numbers that an optimizer keeps: of itself, of its groups and of one parameter."""
    if optimizer is None:
        return {}
    own = [vars(optimizer), *optimizer.param_groups, optimizer.state.get(parameter) or {}]
    return {
        f"{place} {key}": float(value)
        for place, numbers in enumerate(own)
        for key, value in numbers.items()
        if _is_number(value) or (isinstance(value, torch.Tensor) and value.dim() == 0)
    }


def _switched_off(optimizer: torch.optim.Optimizer | None) -> bool:
    """It has an option of its own that is off: what the rule lacks may be what that switches."""
    groups = optimizer.param_groups if optimizer is not None else []
    return any(v is False and k not in _USUAL for g in groups for k, v in g.items())


def _finite(grad: torch.Tensor | None) -> bool:
    return grad is None or bool(torch.isfinite(grad).all())


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str)) or (
        isinstance(value, (list, tuple)) and all(map(_is_number, value))
    )
