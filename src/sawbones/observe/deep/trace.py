"""The operator trace: every torch function of a step, with call site, module and the values that
went in and out.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from sawbones.observe.deep.measure import Ledger, Statistic, is_plain, plain_below
from sawbones.observe.deep.names import bind, name_of, scalars
from sawbones.observe.deep.switched import switched_off_at
from sawbones.observe.guard import is_from_outside
from sawbones.observe.interrupts import HOLDING
from sawbones.observe.operators import OperatorStream
from sawbones.observe.sites import SiteFinder
from sawbones.observe.tracing import is_tracing
from sawbones.observe.unseen import unseen
from sawbones.properties.inputs import tensors_in
from sawbones.schema import Op, Site, Value
from sawbones.trace.operators import LOSSES

MAX_OPS = 6000  # with statistics, and in the record
# after that by name and identity only, so that the way from the loss to the inputs stays known
_MAX_LIGHT_OPS = 30_000
_MAX_DATA_OPS = (
    1500  # before the model: collating a batch takes thousands of slices, the last ones matter
)
_MAX_SILENT_OPS = 1000  # recorded in no_grad regions, without statistics
_MAX_INPUTS = 16
# Tensors of the step are kept alive for the analyses before the backward, up to so many bytes;
# beyond it only by weak reference.
_KEEP_CPU = 1 << 30
_KEEP_CUDA = 4 << 30

_LEAVES_TORCH = frozenset(
    {"item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__"}
)
_ALWAYS_KEPT = LOSSES | {"embedding"}
_HOOKS = frozenset({"register_hook", "retain_grad", "register_post_accumulate_grad_hook"})
_IGNORED = frozenset(
    {"backward", "grad", "_set_grad_enabled", "__bool__", "__len__", "__iter__", "is_grad_enabled"}
)


class Ref:
    """A tensor as one operator saw it."""

    __slots__ = (
        "dtype",
        "entry",
        "id",
        "is_parameter",
        "requires_grad",
        "shape",
        "statistic",
        "version",
    )

    def __init__(
        self, entry: _Entry, tensor: torch.Tensor, statistic: Statistic | None, version: int
    ) -> None:
        self.entry = entry
        self.id = entry.id
        self.shape = tuple(tensor.shape)
        self.dtype = str(tensor.dtype).removeprefix("torch.")
        self.requires_grad = tensor.requires_grad
        self.is_parameter = (tensor.requires_grad and tensor.is_leaf) or isinstance(
            tensor, torch.nn.Parameter
        )
        self.statistic = statistic
        self.version = version

    def tensor(self) -> torch.Tensor | None:
        """The tensor itself, None when it is gone or has been written over since."""
        tensor = self.entry.strong if self.entry.strong is not None else self.entry.weak()
        return tensor if tensor is not None and version_of(tensor) == self.version else None

    def value(self) -> Value:
        s = self.statistic
        if s is None:
            return Value(self.id, self.shape, self.dtype, requires_grad=self.requires_grad)
        return Value(
            self.id,
            self.shape,
            self.dtype,
            s.min,
            s.max,
            s.mean,
            s.std,
            s.nonfinite,
            self.requires_grad,
        )


_CHECKPOINTING = os.path.join("torch", "utils", "checkpoint.py")
_DISTRIBUTIONS = os.path.join("torch", "distributions") + os.sep
_WRITTEN_IN_PYTHON = tuple(
    os.path.join("torch", name) for name in ("_tensor.py", "functional.py", "overrides.py")
)


class _Entry:
    __slots__ = ("id", "ref", "strong", "weak")

    def __init__(self, number: int, tensor: torch.Tensor) -> None:
        self.id = number
        self.weak = weakref.ref(tensor)
        self.strong: torch.Tensor | None = None
        self.ref: Ref | None = None


class RawOp:
    """One operator while the step runs; `arguments` names the tensors among its arguments."""

    __slots__ = (
        "args",
        "arguments",
        "index",
        "inputs",
        "module",
        "name",
        "outputs",
        "phase",
        "silent",
        "site",
        "switched",
    )

    def __init__(self, index: int, name: str, site: Site | None, module: Any, silent: bool) -> None:
        self.index = index
        self.name = name
        self.site = site
        self.module = module
        self.silent = silent
        self.inputs: tuple[Ref, ...] = ()
        self.outputs: tuple[Ref, ...] = ()
        self.arguments: dict[str, Ref] = {}
        self.args: dict[str, Any] = {}
        self.phase = "forward"
        self.switched: Site | None = (
            None  # where gradients were switched off, for an operator of trained weights
        )

    def record(self, path: Callable[[Any], str]) -> Op:
        return Op(
            self.index,
            self.name,
            self.site,
            path(self.module),
            tuple(r.value() for r in self.inputs),
            tuple(r.value() for r in self.outputs),
            self.args,
            self.phase,
        )


def version_of(tensor: torch.Tensor) -> int:
    try:
        return int(tensor._version)
    except RuntimeError:  # inference tensors do not count their versions
        return 0


def _saves_through_hooks(frame: Any) -> bool:
    """What autograd saves here goes through a hook: checkpointing or offloading."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    if top is not None:
        return top(True) is not None
    while (
        frame is not None
    ):  # torch 2.6 does not tell: there only torch's own checkpointing is recognised
        if frame.f_code.co_filename.endswith(_CHECKPOINTING):
            return True
        frame = frame.f_back
    return False


def _is_of_log_prob(frame: Any) -> bool:
    """It stands in the method of a distribution itself, not in what that one calls."""
    while frame.f_code.co_filename.endswith(_WRITTEN_IN_PYTHON) and frame.f_back is not None:
        frame = frame.f_back
    code = frame.f_code
    return code.co_name == "log_prob" and _DISTRIBUTIONS in code.co_filename


class Tracer:
    """Watches torch functions while its stream is on. Own errors end the recording, never the
    call.
    """

    def __init__(self, sites: SiteFinder, ledger: Ledger, module: Callable[[], Any]) -> None:
        self.stream = OperatorStream(self._watched)
        self.ops: list[RawOp] = []
        self.failed: dict[str, Any] | None = None
        self.hooked = False
        # saved tensors are recomputed or fetched in the backward: checkpointing, offloading
        self.unpacks = False
        self.errors: list[str] = []
        self.phase = "forward"
        self.paused = False
        self.skips_silent = False  # until the first operator that runs with gradients on
        self.replaced: dict[Any, Callable[..., Any]] = {}
        self.on_op: Callable[[RawOp, Any], None] | None = None
        self._sites = sites
        self._ledger = ledger
        self._module = module
        self._entries: dict[int, _Entry] = {}
        self._count = 0
        self._silent = 0
        self._data_ops = 0
        self._kept_bytes = 0
        self._kept_storages: set[int] = set()

    def _watched(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        if self.replaced:
            func = self.replaced.get(func, func)
        if self.paused or is_tracing():
            return func(*args, **kwargs)
        name = name_of(func)
        if (
            name is None
            or name in _IGNORED
            or (len(self.ops) >= _MAX_LIGHT_OPS and name not in LOSSES)
        ):
            return func(*args, **kwargs)
        silent = not torch.is_grad_enabled()
        if self.skips_silent and silent:
            return func(*args, **kwargs)
        self.skips_silent = False
        before: list[Ref] | None = None
        if name.endswith("_") or name.startswith("set_"):
            before = self._contained(lambda: self._inputs(args, kwargs, silent))
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            frame, text = sys._getframe(2), f"{type(error).__name__}: {error}"[:500]
            self._contained(lambda: self._fail(name, args, kwargs, frame, text))
            raise
        frame = sys._getframe(2)
        self._contained(
            lambda: self._record(name, func, args, kwargs, result, before, frame, silent)
        )
        return result

    def _contained(self, action: Callable[[], Any]) -> Any:
        with HOLDING:
            try:
                with unseen(), torch.no_grad():
                    return action()
            except Exception as error:
                if is_from_outside(error):
                    raise
                if len(self.errors) < 20:
                    self.errors.append(f"trace: {type(error).__name__}: {error}"[:200])
                return None

    def _record(
        self,
        name: str,
        func: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        before: list[Ref] | None,
        frame: Any,
        silent: bool,
    ) -> None:
        if name in _HOOKS:
            self.hooked = True
            return
        light = silent or (len(self.ops) >= MAX_OPS and name not in LOSSES)
        made = list(tensors_in(result))[:_MAX_INPUTS]
        if name == "__setitem__" or name.startswith("set_"):
            made = [args[0]]
        if not made and name not in _LEAVES_TORCH:
            return
        if silent:
            self._silent += 1
            if self._silent > _MAX_SILENT_OPS:
                return
        op = RawOp(len(self.ops), name, self._sites.find(frame), self._module(), silent)
        bound = bind(name, func, args, kwargs)
        op.args = scalars(name, bound)
        if silent:
            op.args["no_grad"] = True
        if _is_of_log_prob(frame):
            op.args["of"] = "log_prob"
        op.phase = self.phase
        op.inputs = tuple(before if before is not None else self._inputs(args, kwargs, light))
        self._name_arguments(op, bound, light)
        op.outputs = tuple(self.ref(tensor, light) for tensor in made)
        if silent and any(ref.is_parameter and ref.requires_grad for ref in op.inputs):
            op.switched = switched_off_at(frame, self._sites)
        if name in _ALWAYS_KEPT and not silent:
            for ref in (*op.inputs, *op.outputs):
                self.keep(ref)
        if not silent and not self.unpacks and _saves_through_hooks(frame):
            self.unpacks = True
        self.ops.append(op)
        if op.module is None and not any(ref.requires_grad for ref in (*op.inputs, *op.outputs)):
            self._data_ops += 1
            if self._data_ops > _MAX_DATA_OPS:
                self._forget_data()
        if self.on_op is not None and not light:
            self.on_op(op, result)

    def _name_arguments(self, op: RawOp, bound: Mapping[str, Any], light: bool) -> None:
        of_table = bool(op.inputs) and op.inputs[0].is_parameter
        for key, value in bound.items():
            is_index = key == "other" and op.name == "__getitem__"
            if isinstance(value, torch.Tensor):
                op.arguments[key] = self.ref(value, light)
                if is_index and of_table:
                    op.arguments["index0"] = op.arguments[key]  # rows of a table
            elif is_index:
                indices = [t for t in tensors_in(value) if not t.is_floating_point()]
                for number, index in enumerate(indices[:4]):
                    op.arguments[f"index{number}"] = self.ref(index, light)

    def _forget_data(self) -> None:
        """Drops the older half of the operators that prepared data, and the tensors that only they
        knew.
        """
        budget = self._data_ops // 2
        kept: list[RawOp] = []
        for op in self.ops:
            is_data = op.module is None and not any(
                ref.requires_grad for ref in (*op.inputs, *op.outputs)
            )
            if is_data and budget > 0:
                budget -= 1
                for ref in op.outputs:
                    ref.entry.strong = None
                continue
            op.index = len(kept)
            kept.append(op)
        self._data_ops -= self._data_ops // 2
        self.ops = kept

    def _inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any], silent: bool) -> list[Ref]:
        return [
            self.ref(t, silent)
            for _, t in zip(range(_MAX_INPUTS), tensors_in((args, kwargs)), strict=False)
        ]

    def ref(self, tensor: torch.Tensor, silent: bool = False) -> Ref:
        entry = self._entries.get(id(tensor))
        if entry is None or (entry.strong is None and entry.weak() is not tensor):
            self._count += 1
            entry = self._entries[id(tensor)] = _Entry(self._count, tensor)
            if not silent:
                self._keep(entry, tensor)
        version = version_of(tensor)
        known = entry.ref
        current = (
            known is not None
            and known.version == version
            and known.requires_grad == tensor.requires_grad
        )
        if (
            known is not None
            and current
            and (silent or known.statistic is not None or not is_plain(tensor))
        ):
            return known
        statistic = None if silent else self._ledger.statistic(tensor)
        entry.ref = Ref(entry, tensor, statistic, version)
        return entry.ref

    def known(self, tensor: torch.Tensor) -> Ref | None:
        entry = self._entries.get(id(tensor))
        return (
            entry.ref
            if entry is not None and (entry.strong is tensor or entry.weak() is tensor)
            else None
        )

    def _keep(self, entry: _Entry, tensor: torch.Tensor) -> None:
        if not is_plain(tensor):
            return
        storage = plain_below(tensor).untyped_storage()
        key = storage.data_ptr()
        if key not in self._kept_storages:
            limit = _KEEP_CUDA if tensor.is_cuda else _KEEP_CPU
            if self._kept_bytes + storage.nbytes() > limit:
                return
            self._kept_storages.add(key)
            if not tensor.is_leaf or not tensor.requires_grad:
                self._kept_bytes += storage.nbytes()
        entry.strong = tensor

    def keep(self, ref: Ref) -> None:
        """Holds on to a tensor that an analysis needs, whatever the budget says."""
        if ref.entry.strong is None:
            ref.entry.strong = ref.entry.weak()

    def _fail(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], frame: Any, text: str
    ) -> None:
        given = [t for _, t in zip(range(_MAX_INPUTS), tensors_in((args, kwargs)), strict=False)]
        bound = {f"arg{i}": value for i, value in enumerate(args)} | dict(kwargs)
        self.failed = {
            "op": name,
            "site": self._sites.find(frame),
            "inputs": [self.ref(t) for t in given],
            "layouts": [_layout(t) for t in given],
            "args": scalars(name, bound),
            "error": text,
        }

    def release(self) -> None:
        """Lets go of every tensor; what has been recorded stays."""
        for entry in self._entries.values():
            entry.strong = None
        self._entries.clear()
        self._kept_storages.clear()


def _layout(tensor: torch.Tensor) -> dict[str, Any]:
    strides = list(tensor.stride()) if tensor.layout is torch.strided else None
    return {
        "device": str(tensor.device),
        "strides": strides,
        "requires_grad": tensor.requires_grad,
    }


HOLDING.bridges.add(Tracer._watched.__code__)
