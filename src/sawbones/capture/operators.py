"""The operators of one step, with the values they were given: which one failed, or made the first value that is not finite."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode, resolve_name

from sawbones.capture.arrivals import cloned
from sawbones.capture.errors import CaptureError
from sawbones.capture.substitution import map_tensors
from sawbones.observe.fingerprints import tensors_in
from sawbones.schema import Site

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

MAX_OPS = 20_000
CALL_BYTES = 64 << 20
_QUIET = {"backward", "__get__", "__set__", "size", "dim", "is_floating_point", "register_hook", "item", "tolist", "requires_grad_"}
# Infinity made on purpose: a mask. What becomes of it later is what matters.
_MASKING = {
    "masked_fill", "masked_fill_", "full", "full_like", "where", "triu", "tril", "new_full", "fill_", "tensor", "__setitem__",
    "zeros", "log",
}  # fmt: skip


@dataclass
class Call:
    """One operator. Its arguments are the tensors themselves, copied where the operator was found to be the one."""

    name: str  # as torch spells it: torch.nn.functional.embedding
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any = None
    site: Site | None = None
    in_model: bool = False
    autocast: str | None = None  # dtype
    func: Callable[..., Any] | None = field(default=None, repr=False)

    @property
    def short(self) -> str:
        return self.name.rsplit(".", 1)[-1]

    def inputs(self) -> list[torch.Tensor]:
        return [t for _, t in tensors_in([list(self.args), self.kwargs])]

    def outputs(self) -> list[torch.Tensor]:
        return [t for _, t in tensors_in([self.output])]

    @property
    def writes_nothing(self) -> bool:
        return self.short != "__setitem__" and not (self.short.endswith("_") and not self.short.endswith("__"))

    def copied(self) -> Call:
        """With tensors of its own, on the CPU and outside of every graph."""
        args, kwargs = map_tensors([list(self.args), self.kwargs], lambda path, t: t.detach().to("cpu", copy=True))
        return replace(self, args=tuple(args), kwargs=dict(kwargs), output=None)

    def on_leaves(self) -> Call:
        """Every floating tensor once, wanting its gradient."""
        known: dict[int, torch.Tensor] = {}

        def leaf(path: str, tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in known:
                known[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.is_floating_point())
            return known[id(tensor)]

        args, kwargs = map_tensors([list(self.args), self.kwargs], leaf)
        return replace(self, args=tuple(args), kwargs=dict(kwargs), output=None)

    def again(self) -> Any:
        """On copies: an operator may write over what it is given."""
        assert self.func is not None
        args, kwargs = list(self.args), self.kwargs
        if not self.writes_nothing:
            args, kwargs = cloned(args), cloned(kwargs)
        dtype = getattr(torch, self.autocast or "bfloat16")
        with torch.autocast("cpu", dtype=dtype, enabled=self.autocast is not None):
            return self.func(*args, **kwargs)


class OperatorTrace(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    def __init__(self, recorder: Recorder | None = None) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.failed: Call | None = None
        self.root: Any = None  # the loss
        self.gradients: dict[int, torch.Tensor] = {}  # of traced tensors, by identity; the calls keep them alive
        self._r = recorder

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        short = getattr(func, "__name__", "")
        if short in _QUIET or len(self.calls) >= MAX_OPS:
            return func(*args, **kwargs)
        before = (tuple(args), kwargs)
        if short.endswith("_") or short == "__setitem__":  # it writes over what it is given
            with torch._C.DisableTorchFunction():
                before = (cloned(tuple(args)), cloned(kwargs))
        try:
            result = func(*args, **kwargs)
        except Exception:
            with torch._C.DisableTorchFunction():
                self.failed = self._call(func, *before)
            raise
        with torch._C.DisableTorchFunction():
            call = self._call(func, *before)
            call.output = result if short != "__setitem__" else args[0]
            if call.inputs() or call.outputs():
                self.calls.append(call)
                self._watch(call)
        return result

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        name = resolve_name(func) or f"{getattr(func, '__module__', None) or 'torch'}.{getattr(func, '__name__', '?')}"
        autocast = str(torch.get_autocast_dtype("cpu")).removeprefix("torch.") if torch.is_autocast_enabled("cpu") else None
        site = self._r.sites.find() if self._r is not None else None
        return Call(name, args, kwargs, None, site, bool(self._r is not None and self._r.depth), autocast, func)

    def _watch(self, call: Call) -> None:
        if not torch.is_grad_enabled():
            return
        for tensor in [*call.inputs(), *call.outputs()]:
            if tensor.requires_grad and id(tensor) not in self.gradients:
                self.gradients[id(tensor)] = torch.empty(0)

                def keep(grad: torch.Tensor, key: int = id(tensor)) -> None:
                    self.gradients[key] = grad.detach()

                tensor.register_hook(keep)


# which operator it was


def has_nan(tensors: Sequence[torch.Tensor]) -> bool:
    return any(bool(torch.isnan(t).any()) for t in tensors if t.is_floating_point() or t.is_complex())


def is_finite(tensors: Sequence[torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(t).all()) for t in tensors if t.is_floating_point() or t.is_complex())


def first_nonfinite(trace: OperatorTrace) -> Call | None:
    """The operator that turned good values into NaN; where those came from an overflow, the operator that overflowed."""
    made: dict[int, Call] = {}
    overflowed: Call | None = None
    for call in trace.calls:
        outputs, inputs = call.outputs(), call.inputs()
        if is_finite(outputs):
            for tensor in outputs:
                made.setdefault(id(tensor), call)
            continue
        if has_nan(outputs) and not has_nan(inputs):
            return _origin_of_infinity(inputs, made) or call
        if overflowed is None and is_finite(inputs) and call.short not in _MASKING:
            overflowed = call
        for tensor in outputs:
            made[id(tensor)] = call
    return overflowed or next((c for c in trace.calls if not is_finite(c.outputs()) and c.short not in _MASKING), None)


def _origin_of_infinity(inputs: list[torch.Tensor], made: dict[int, Call]) -> Call | None:
    todo = [t for t in inputs if not is_finite([t])]
    for _ in range(1000):
        if not todo:
            return None
        tensor = todo.pop()
        call = made.get(id(tensor))
        if call is None:
            continue
        before = call.inputs()
        if is_finite(before):
            if call.short not in _MASKING:
                return call
            continue
        todo += [t for t in before if not is_finite([t])]
    return None


def first_nonfinite_gradient(trace: OperatorTrace) -> tuple[Call, torch.Tensor] | None:
    """In the order of the backward pass: a finite gradient went in, one that is not finite came out."""
    for call in reversed(trace.calls):
        for output in call.outputs():
            grad = trace.gradients.get(id(output))
            if grad is None or not grad.numel() or not is_finite([grad]):
                continue
            received = [trace.gradients.get(id(t)) for t in call.inputs() if t.requires_grad]
            if any(g is not None and g.numel() and not is_finite([g]) for g in received):
                return call, grad
    return None


# what an exception was raised on, at capture time


def failing_call(error: BaseException, recorder: Recorder) -> dict[str, Any] | None:
    """The operator with its arguments: from the frames of the traceback, or by repeating the last model call. The run is over."""
    call = _from_frames(error) or _by_repeating(error, recorder)
    if call is None or sum(t.numel() * t.element_size() for t in call.inputs()) > CALL_BYTES:
        return None
    return {"function": call.name, "args": list(call.args), "kwargs": call.kwargs, "autocast": call.autocast}


def _from_frames(error: BaseException) -> Call | None:
    found = None
    tb = error.__traceback__
    while tb is not None:
        frame = tb.tb_frame
        name = frame.f_code.co_name
        if frame.f_globals.get("__name__") == "torch.nn.functional" and hasattr(torch.nn.functional, name):
            given = inspect.getargvalues(frame)
            if not given.varargs and not given.keywords and found is None:
                values = {key: given.locals[key] for key in given.args if key in given.locals and not key.startswith("_")}
                found = Call(f"torch.nn.functional.{name}", (), values)
        tb = tb.tb_next
    return found


def _by_repeating(error: BaseException, recorder: Recorder) -> Call | None:
    if recorder.last_call is None:
        return None
    module, args, kwargs = recorder.last_call
    trace = OperatorTrace(recorder)
    try:
        with trace, torch.enable_grad():
            module(*args, **kwargs)
    except Exception as again:
        return trace.failed if type(again) is type(error) else None
    return None


def run_call(call: Mapping[str, Any]) -> None:
    """Executes a recorded operator. Only names that lie in torch itself are looked up."""
    function: Any = torch
    for piece in str(call["function"]).split(".")[1:]:
        if piece.startswith("_") and not piece.startswith("__"):
            raise CaptureError(f"{call['function']} is no public operator of torch")
        function = getattr(function, piece)
    if not callable(function) or isinstance(function, type) or not _is_operator(function):
        raise CaptureError(f"{call['function']} is no operator of torch")
    with torch.autocast("cpu", dtype=getattr(torch, call["autocast"] or "bfloat16"), enabled=bool(call["autocast"])):
        function(*call["args"], **call["kwargs"])


def _is_operator(function: Any) -> bool:
    """On the list of what tensors can override: nothing that loads, saves or compiles is on it."""
    from torch.overrides import get_testing_overrides

    try:
        return function in get_testing_overrides()
    except TypeError:
        return False
