"""The operators of one step, with the values they were given: which one failed, or made the first
value that is not finite.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import resolve_name

from sawbones.capture.arrivals import cloned
from sawbones.capture.errors import CaptureError
from sawbones.capture.substitution import map_tensors
from sawbones.observe.fingerprints import tensors_in
from sawbones.observe.operators import OperatorStream
from sawbones.schema import Site

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

MAX_OPS = 20_000
CALL_BYTES = 64 << 20
_QUIET = {
    "backward",
    "__get__",
    "__set__",
    "size",
    "dim",
    "is_floating_point",
    "register_hook",
    "item",
    "tolist",
    "requires_grad_",
}
# Infinity made on purpose: a mask. What becomes of it later is what matters.
_MASKING = {
    "masked_fill",
    "masked_fill_",
    "full",
    "full_like",
    "where",
    "triu",
    "tril",
    "new_full",
    "fill_",
    "tensor",
    "__setitem__",
    "zeros",
    "log",
}

# These only pass values on.
_MOVING = {
    "detach",
    "detach_",
    "clone",
    "contiguous",
    "to",
    "float",
    "half",
    "bfloat16",
    "double",
    "view",
    "reshape",
    "flatten",
    "unsqueeze",
    "squeeze",
    "expand",
    "expand_as",
    "transpose",
    "permute",
    "t",
    "cat",
    "stack",
    "__getitem__",
    "chunk",
    "split",
    "unbind",
    "pad",
    "index_select",
    "gather",
    "repeat",
    "as_tensor",
    "tensor",
    "from_numpy",
    "cpu",
    "isnan",
    "isfinite",
}


def writes(short: str) -> bool:
    """Over what it is given. x += y is __iadd__, 1 / x is __rtruediv__."""
    return (
        short == "__setitem__"
        or short.startswith("__i")
        or (short.endswith("_") and not short.endswith("__"))
    )


@dataclass(frozen=True)
class Seen:
    """What a call was given and gave, looked at when it was made: what comes after may write over
    all of it.
    """

    given: tuple[tuple[int, bool], ...]  # identity, and whether all of it was finite
    gave: tuple[tuple[int, bool], ...]  # without what it only handed back
    nan_in: bool
    nan_out: bool

    @property
    def finite_in(self) -> bool:
        return all(finite for _, finite in self.given)

    @property
    def finite_out(self) -> bool:
        return all(finite for _, finite in self.gave)


@dataclass
class Call:
    """One operator. Its arguments are the tensors themselves, copied where the operator was found
    to be the one.
    """

    name: str  # as torch spells it: torch.nn.functional.embedding
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any = None
    site: Site | None = None
    in_model: bool = False
    autocast: str | None = None  # dtype
    func: Callable[..., Any] | None = field(default=None, repr=False)
    seen: Seen | None = field(default=None, repr=False)

    @property
    def short(self) -> str:
        return self.name.rsplit(".", 1)[-1]

    def inputs(self) -> list[torch.Tensor]:
        return [t for _, t in tensors_in([list(self.args), self.kwargs])]

    def outputs(self) -> list[torch.Tensor]:
        return [t for _, t in tensors_in([self.output])]

    @property
    def writes_nothing(self) -> bool:
        return not writes(self.short)

    def copied(self) -> Call:
        """With tensors of its own, on the CPU and outside of every graph."""
        args, kwargs = map_tensors(
            [list(self.args), self.kwargs], lambda path, t: t.detach().to("cpu", copy=True)
        )
        return replace(self, args=tuple(args), kwargs=dict(kwargs), output=None)

    def on_leaves(self) -> Call:
        """Every floating tensor once, wanting its gradient."""
        known: dict[int, torch.Tensor] = {}

        def leaf(path: str, tensor: torch.Tensor) -> torch.Tensor:
            if id(tensor) not in known:
                known[id(tensor)] = (
                    tensor.detach().clone().requires_grad_(tensor.is_floating_point())
                )
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


class OperatorTrace:
    def __init__(self, recorder: Recorder | None = None) -> None:
        self.stream = OperatorStream(self._called)
        self.calls: list[Call] = []
        self.failed: Call | None = None
        self.root: Any = None  # the loss
        self.gradients: dict[
            int, torch.Tensor
        ] = {}  # of traced tensors, by identity; the calls keep them alive
        self._r = recorder
        self._alive: list[torch.Tensor] = []

    def _called(self, func: Any, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        kwargs = dict(given)
        short = getattr(func, "__name__", "")
        if short in _QUIET or len(self.calls) >= MAX_OPS:
            return func(*args, **kwargs)
        before = (tuple(args), kwargs)
        if writes(short):
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
                self._watch(call)
                self.calls.append(self._looked_at(call))
        return result

    def _looked_at(self, call: Call) -> Call:
        inputs, outputs = call.inputs(), call.outputs()
        given = {id(t) for t in inputs}
        fresh = [t for t in outputs if id(t) not in given]  # .to() may hand back what it was given
        call.seen = Seen(
            tuple((id(t), is_finite([t])) for t in inputs),
            tuple((id(t), is_finite([t])) for t in fresh),
            has_nan(inputs),
            has_nan(fresh),
        )
        if call.seen.finite_out:
            return call
        self._alive += inputs  # identities must stay theirs
        return replace(call.copied(), output=call.output)

    def _call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        name = (
            resolve_name(func)
            or f"{getattr(func, '__module__', None) or 'torch'}.{getattr(func, '__name__', '?')}"
        )
        autocast = (
            str(torch.get_autocast_dtype("cpu")).removeprefix("torch.")
            if torch.is_autocast_enabled("cpu")
            else None
        )
        site = self._r.sites.find() if self._r is not None else None
        return Call(
            name,
            args,
            kwargs,
            None,
            site,
            bool(self._r is not None and self._r.depth),
            autocast,
            func,
        )

    def _watch(self, call: Call) -> None:
        if not torch.is_grad_enabled():
            return
        for tensor in [*call.inputs(), *call.outputs()]:
            if tensor.requires_grad and id(tensor) not in self.gradients:
                self.gradients[id(tensor)] = torch.empty(0)

                def keep(grad: torch.Tensor, key: int = id(tensor)) -> None:
                    self.gradients[key] = grad.detach().clone()  # clipping writes over it

                tensor.register_hook(keep)


# which operator it was


def has_nan(tensors: Sequence[torch.Tensor]) -> bool:
    return any(
        bool(torch.isnan(t).any()) for t in tensors if t.is_floating_point() or t.is_complex()
    )


def is_finite(tensors: Sequence[torch.Tensor]) -> bool:
    return all(
        bool(torch.isfinite(t).all()) for t in tensors if t.is_floating_point() or t.is_complex()
    )


def first_nonfinite(trace: OperatorTrace) -> Call | None:
    """The operator that turned good values into NaN; where those came from an overflow, the
    operator that overflowed.
    """
    made: dict[int, Call] = {}
    overflowed: Call | None = None
    spoiled: list[Call] = []  # by data or weights
    for call in trace.calls:
        seen = call.seen
        if seen is None:
            continue
        if not seen.finite_out:
            if seen.nan_out and not seen.nan_in:
                return _origin_of_infinity(seen, made) or call
            if (
                overflowed is None
                and seen.finite_in
                and call.short not in _MASKING
                and not _is_given_infinity(call)
            ):
                overflowed = call
            if call.short not in _MASKING:
                spoiled.append(call)
        made.update((number, call) for number, _ in seen.gave)
    return overflowed or next(
        (c for c in spoiled if c.short not in _MOVING), spoiled[0] if spoiled else None
    )


def _is_given_infinity(call: Call) -> bool:
    """As a plain number: inf / norm is what clipping without a limit does."""
    return any(
        isinstance(a, float) and not math.isfinite(a) for a in (*call.args, *call.kwargs.values())
    )


def _origin_of_infinity(seen: Seen, made: dict[int, Call]) -> Call | None:
    todo = [number for number, finite in seen.given if not finite]
    known: set[int] = set()
    while todo:
        number = todo.pop()
        call = made.get(number)
        if call is None or call.seen is None or number in known:
            continue
        known.add(number)
        if call.seen.finite_in:
            if call.short not in _MASKING:
                return call
            continue
        todo += [n for n, finite in call.seen.given if not finite]
    return None


def first_nonfinite_gradient(trace: OperatorTrace) -> tuple[Call, torch.Tensor] | None:
    """In the order of the backward pass: a finite gradient went in, one that is not finite came
    out.
    """
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


def as_recorded(call: Call) -> dict[str, Any]:
    return {
        "function": call.name,
        "args": list(call.args),
        "kwargs": call.kwargs,
        "autocast": call.autocast,
    }


def in_frames(error: BaseException) -> Call | None:
    found = None
    tb = error.__traceback__
    while tb is not None:
        frame = tb.tb_frame
        name = frame.f_code.co_name
        if frame.f_globals.get("__name__") == "torch.nn.functional" and hasattr(
            torch.nn.functional, name
        ):
            given = inspect.getargvalues(frame)
            if not given.varargs and not given.keywords and found is None:
                values = {
                    key: given.locals[key]
                    for key in given.args
                    if key in given.locals and not key.startswith("_")
                }
                found = Call(f"torch.nn.functional.{name}", (), values)
        tb = tb.tb_next
    return found


def by_repeating(error: BaseException, recorder: Recorder) -> Call | None:
    """Runs the user's model again: to be called in a fork."""
    if recorder.last_call is None:
        return None
    module, args, kwargs = recorder.last_call
    trace = OperatorTrace(recorder)
    try:
        with trace.stream, torch.enable_grad():
            module(*args, **kwargs)
    except Exception as again:
        return trace.failed if type(again) is type(error) else None
    return None


def run_call(call: Mapping[str, Any]) -> Any:
    """Executes a recorded operator."""
    function = operator_named(str(call["function"]))
    with torch.autocast(
        "cpu", dtype=getattr(torch, call["autocast"] or "bfloat16"), enabled=bool(call["autocast"])
    ):
        return function(*call["args"], **call["kwargs"])


def operator_named(name: str) -> Callable[..., Any]:
    """Only names that lie in torch itself are looked up."""
    function: Any = torch
    for piece in name.split(".")[1:]:
        if piece.startswith("_") and not piece.startswith("__"):
            raise CaptureError(f"{name} is no public operator of torch")
        function = getattr(function, piece, None)
    if not callable(function) or isinstance(function, type) or not _is_operator(function):
        raise CaptureError(f"{name} is no operator of torch")
    found: Callable[..., Any] = function
    return found


def _is_operator(function: Any) -> bool:
    """On the list of what tensors can override: nothing that loads, saves or compiles is on it."""
    from torch.overrides import get_testing_overrides

    try:
        return function in get_testing_overrides()
    except TypeError:
        return False
