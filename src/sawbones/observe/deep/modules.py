"""Which module runs inside which, with what shapes: temporary global module hooks of one deep
step.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as global_hooks

from sawbones.observe.calls import is_training
from sawbones.observe.guard import is_from_outside
from sawbones.observe.interrupts import HOLDING
from sawbones.observe.sites import SiteFinder
from sawbones.observe.tracing import is_tracing
from sawbones.observe.unseen import unseen
from sawbones.properties.inputs import tensors_in
from sawbones.schema import Site

_MAX_CALLS = 20_000


class ModuleCall:
    """One call of a module. The top-level call keeps its arguments, for the property tests."""

    __slots__ = (
        "args",
        "children",
        "cls",
        "depth",
        "grad",
        "inputs",
        "kwargs",
        "module",
        "number",
        "output",
        "outputs",
        "site",
        "training",
    )

    def __init__(
        self, module: nn.Module, number: int, depth: int, site: Site | None, inputs: list[Any]
    ) -> None:
        self.module = module
        self.cls = type(module).__name__
        self.number = number
        self.depth = depth
        self.site = site
        self.inputs = inputs
        self.outputs: list[Any] | None = None
        self.training = is_training(module)
        self.grad = torch.is_grad_enabled()
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}
        self.output: Any = None


def shapes(value: Any) -> list[Any]:
    """Dtype and shape of each tensor; a nested one, as torch's encoder makes of padded batches in
    eval mode, has no shape.
    """
    return [
        [str(t.dtype).removeprefix("torch."), [] if t.is_nested else list(t.shape)]
        for t in list(tensors_in(value))[:8]
    ]


class ModuleWatch:
    """Keeps the stack of running modules and the list of calls."""

    def __init__(self, sites: SiteFinder) -> None:
        self.stack: list[ModuleCall] = []
        self.calls: list[ModuleCall] = []
        self.ran: dict[int, nn.Module] = {}
        self.top_calls: list[ModuleCall] = []
        self.errors: list[str] = []
        self.crash: list[ModuleCall] = []
        self._last_error: BaseException | None = None
        self.on_compiled: Callable[[], None] | None = None
        self.on_leaf: Callable[[ModuleCall, Any], None] | None = None
        self._sites = sites
        self._thread = get_ident()
        self._counts: dict[int, int] = {}
        self._handles: list[Any] = []
        # Transformer layers choose a fused kernel in inference only while no torch function mode is
        # active.
        self._suspended: list[tuple[nn.Module, Any]] = []

    def innermost(self) -> nn.Module | None:
        return self.stack[-1].module if self.stack else None

    def start(self) -> None:
        self._handles = [
            global_hooks.register_module_forward_pre_hook(self._before),
            global_hooks.register_module_forward_hook(
                self._after, with_kwargs=True, always_call=True
            ),
        ]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
            # torch forgets this entry, and a compiled module would warn of global hooks for the
            # rest of the run.
            global_hooks._global_forward_hooks_with_kwargs.pop(handle.id, None)
        self._handles = []
        while self._suspended:
            self._suspended.pop()[1].__exit__(None, None, None)
        self._last_error = None

    def _before(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if is_tracing() or get_ident() != self._thread:
            return
        with HOLDING:
            self._enter(module, args)

    def _enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        if self.on_compiled is not None and is_compiled(module):
            self.on_compiled()
            return
        try:
            with unseen():
                number = self._counts[id(module)] = self._counts.get(id(module), -1) + 1
                site = (
                    self._sites.find()
                    if len(self.stack) < 2 or id(module) not in self.ran
                    else None
                )
                call = ModuleCall(module, number, len(self.stack), site, shapes(args))
                self.ran[id(module)] = module
                if not self.stack and len(self.top_calls) < 16:
                    call.args = args
                    self.top_calls.append(call)
                self.stack.append(call)
                if len(self.calls) < _MAX_CALLS:
                    self.calls.append(call)
            if isinstance(
                module, (nn.MultiheadAttention, nn.TransformerEncoder, nn.TransformerEncoderLayer)
            ):
                self._suspend(module, args)
        except Exception as error:
            self._note(error)

    def _suspend(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        learns = torch.is_grad_enabled() and (
            any(p.requires_grad for p in module.parameters())
            or any(t.requires_grad for t in tensors_in(args))
        )
        if not is_training(module) and not learns:
            guard = torch._C.DisableTorchFunction()
            guard.__enter__()
            self._suspended.append((module, guard))

    def _after(self, module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        # torch calls a global hook without the keyword arguments when the module raised.
        kwargs, output = rest if len(rest) == 2 else ({}, rest[-1])
        if is_tracing() or get_ident() != self._thread:
            return
        with HOLDING:
            self._leave(module, kwargs, output)

    def _leave(self, module: nn.Module, kwargs: dict[str, Any], output: Any) -> None:
        try:
            if self._suspended and self._suspended[-1][0] is module:
                self._suspended.pop()[1].__exit__(None, None, None)
            self._keep_crash(output)
            while self.stack and self.stack[-1].module is not module:
                self.stack.pop()
            if not self.stack:
                return
            call = self.stack.pop()
            with unseen():
                call.outputs = shapes(output)
                if kwargs:
                    call.inputs = call.inputs + shapes(kwargs)
                if call.depth == 0:
                    call.kwargs = kwargs
                    call.output = output
                if self.on_leaf is not None and not module._modules and call.grad:
                    with torch.no_grad():
                        self.on_leaf(call, output)
        except Exception as error:
            self._note(error)

    def _keep_crash(self, output: Any) -> None:
        # The hook also runs, with nothing, when the module raised: the innermost one comes first
        # and has the whole chain.
        error = sys.exc_info()[1]
        if output is None and error is not None and error is not self._last_error:
            self._last_error = error
            self.crash = list(self.stack)

    def _note(self, error: Exception) -> None:
        if is_from_outside(error):
            raise error
        if len(self.errors) < 10:
            self.errors.append(f"modules: {type(error).__name__}: {error}"[:200])


def is_compiled(module: nn.Module) -> bool:
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    if getattr(getattr(compiler, "_stance", None), "stance", None) == "force_eager":
        return False
    optimized = getattr(compiler, "OptimizedModule", None)
    return (optimized is not None and isinstance(module, optimized)) or getattr(
        module, "_compiled_call_impl", None
    ) is not None


def num_compiled() -> int:
    """Functions that torch has compiled in this process so far: its own count."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return int(counters.get("frames", {}).get("total", 0))


class Paths:
    """Names of modules and parameters, as the model itself would give them."""

    def __init__(self, roots: Sequence[nn.Module]) -> None:
        self.modules: dict[int, str] = {}
        self.parameters: dict[int, str] = {}
        classes = Counter(type(root).__name__ for root in roots)
        for number, root in enumerate(roots):
            called = type(root).__name__
            called += str(number) if classes[called] > 1 else ""  # two models of one class are two
            prefix = "" if number == 0 else f"{called}."
            for name, module in root.named_modules():
                self.modules.setdefault(id(module), prefix + name if name else called)
            for name, parameter in root.named_parameters(remove_duplicate=False):
                self.parameters.setdefault(id(parameter), prefix + name)

    def of(self, module: nn.Module | None) -> str:
        if module is None:
            return ""
        return self.modules.get(id(module), f"<{type(module).__name__}>")
