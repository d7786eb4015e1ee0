"""The operator that made a value or gradient that is not finite, with what it was given: kept
beside the step, so that it can be replayed where the user's source is not at hand.

The training goes on after such a step, so all of this takes place in a fork that ends there. The
last model call is repeated under a trace; where the model's own values are good, the operators
after it are read back from autograd's graph. A fork cannot use a device: what the model held and
was given there is copied to the host before, and the call is repeated there. Nor can a fork beside
a device use autograd: then a copy of the model is asked for its gradients in this process, if that
is quick.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.capture import operators, randomness
from sawbones.capture import tensors as codec
from sawbones.capture.graph import walk
from sawbones.capture.on_cpu import on_cpu
from sawbones.capture.operators import Call, OperatorTrace, run_call
from sawbones.capture.packing import Packer, unpack
from sawbones.capture.prints import fingerprint
from sawbones.capture.rebuilding import first_bad
from sawbones.capture.substitution import map_tensors
from sawbones.observe.deep.guard import untouched
from sawbones.observe.forked import in_a_fork

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

DEVICE_BYTES = 2 << 30  # copied to the host, once in a run
SECONDS = 20.0  # for which training waits at most, once in a run
QUICK = 3.0  # a call that takes longer is not made with its backward pass, which nothing can end
NOTHING = "no single operator that shows it could be repeated with what it was given"
Recorded = dict[str, Any]
Called = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]  # a model, with what it was given


def refused_call(error: BaseException, recorder: Recorder, limit: int) -> Recorded | None:
    """The operator that raised, with its arguments: from the frames of the traceback, or by
    repeating the last model call in a fork.
    """
    call = operators.in_frames(error)
    if call is not None:
        size = sum(t.numel() * t.element_size() for t in call.inputs())
        return operators.as_recorded(call) if size <= limit else None
    if recorder.last_call is None or torch.cuda.is_initialized():
        return None

    def find() -> Recorded | None:
        again = operators.by_repeating(error, recorder)
        return operators.as_recorded(again) if again is not None else None

    return _in_a_fork(find, limit)[0]


def bad_value(
    recorder: Recorder, root: Any, rng: Mapping[str, Any], autocast: str | None, limit: int
) -> tuple[Recorded | None, str]:
    """For a loss that is not finite, before its backward pass. Returns the call, or None and why
    there is none.
    """
    host, why = _on_host(recorder.last_call)
    if why:
        return None, why

    def find() -> Recorded | None:
        trace, outputs = _repeated(recorder, recorder.last_call, rng, autocast, host)
        found = (
            operators.first_nonfinite(trace)
            if trace is not None and not operators.is_finite(outputs)
            else None
        )
        if found is None and host is not None:
            return None  # what the graph has saved lies on the device
        return described(found) or described(first_bad(walk(root)))

    return _in_a_fork(find, limit)


def bad_value_of_old(
    recorder: Recorder,
    called: Called,
    weights: Mapping[str, torch.Tensor],
    rng: Mapping[str, Any],
    autocast: str | None,
    limit: int,
) -> tuple[Recorded | None, str]:
    """For a loss that is known only now, some steps later: the model's call of then, with the last
    weights that were copied.
    """
    host, why = _of_old(called, weights)
    if host is None:
        return None, why

    def find() -> Recorded | None:
        trace, outputs = _repeated(recorder, called, rng, autocast, host)
        return (
            described(operators.first_nonfinite(trace))
            if trace is not None and not operators.is_finite(outputs)
            else None
        )

    return _in_a_fork(find, limit)


def bad_gradient_of_old(
    recorder: Recorder,
    called: Called,
    weights: Mapping[str, torch.Tensor],
    rng: Mapping[str, Any],
    autocast: str | None,
    scale: float,
    limit: int,
) -> tuple[Recorded | None, str]:
    """The same for a gradient: of a copy of the model, in this process."""
    host, why = _of_old(called, weights)
    if host is None:
        return None, why
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return (
            None,
            (
                "a model of several ranks may wait for the others, and autograd cannot be "
                "used in a fork beside a device"
            ),
        )
    recorder.active, is_active = False, recorder.active  # the model's call is not the loop's doing
    try:
        with (
            untouched(()),
            warnings.catch_warnings(),
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
        ):
            warnings.simplefilter("ignore")
            copied = _copied(called, host)
            trace, outputs = _repeated(recorder, copied, rng, autocast, host, apart=True)
            found = _asked(copied[0], trace, outputs, scale)
            if found is not None and found["gives"] != "gradient":
                # nobody knows yet that it was the gradient: an infinite value on the way is usual
                # in masks
                found = None
    except Exception as error:
        return (
            None,
            (
                "the model cannot be copied, or not asked for its gradients: "
                f"{type(error).__name__}: {str(error)[:200]}"
            ),
        )
    finally:
        recorder.active = is_active
    why = _too_much(_packed(found)[0], limit) if found is not None else NOTHING
    return (None, why) if why else (found, "")


def _of_old(
    called: Called, weights: Mapping[str, torch.Tensor]
) -> tuple[dict[int, torch.Tensor] | None, str]:
    module = called[0]
    known = dict(module.named_parameters(remove_duplicate=False)) | dict(
        module.named_buffers(remove_duplicate=False)
    )
    return _on_host(called, {id(t): weights[name] for name, t in known.items() if name in weights})


def _copied(called: Called, host: Mapping[int, torch.Tensor]) -> Called:
    """The model, with copies on the host in the place of what it holds; nothing is copied on the
    device.
    """
    module, args, kwargs = called
    memo: dict[int, Any] = {
        id(p): nn.Parameter(host[id(p)], p.requires_grad) for p in module.parameters()
    }
    memo |= {id(b): host[id(b)] for b in module.buffers()}
    return copy.deepcopy(module, memo), args, kwargs


def _asked(
    module: nn.Module, trace: OperatorTrace | None, outputs: list[torch.Tensor], scale: float
) -> Recorded | None:
    """The first operator whose gradient is not finite, where the model's results are asked with
    plain ones.
    """
    asked = [t for t in outputs if t.requires_grad]
    if trace is None or not asked:
        return None
    # Not backward(): nothing may be accumulated, or sent to other ranks by what waits for it.
    wanted = [p for p in module.parameters() if p.requires_grad]
    torch.autograd.grad(
        asked, wanted, [torch.full_like(t, scale) for t in asked], allow_unused=True
    )
    pair = operators.first_nonfinite_gradient(trace)
    return described(*pair) if pair is not None else described(operators.first_nonfinite(trace))


def bad_gradient(
    recorder: Recorder, rng: Mapping[str, Any], autocast: str | None, scale: float, limit: int
) -> tuple[Recorded | None, str]:
    """For a gradient that is not finite: its graph is gone, so the model's own is built again and
    asked with plain ones.
    """
    if recorder.last_call is not None and any(
        p.is_cuda for p in recorder.last_call[0].parameters()
    ):
        return None, "autograd has threads for its device, and those do not survive a fork"

    def find() -> Recorded | None:
        called = recorder.last_call
        return (
            _asked(called[0], *_repeated(recorder, called, rng, autocast, None), scale)
            if called is not None
            else None
        )

    return _in_a_fork(find, limit)


def _on_host(
    called: Called | None, instead: Mapping[int, torch.Tensor] | None = None
) -> tuple[dict[int, torch.Tensor] | None, str]:
    """Copies of what a model call used on a device, by identity; None where there is no device.
    `instead`: values for some.
    """
    if called is None:
        return None, ""
    module, args, kwargs = called
    tensors = [
        *module.parameters(),
        *module.buffers(),
        *Call("", tuple(args), dict(kwargs)).inputs(),
    ]
    if instead is None and not any(t.is_cuda for t in tensors):
        return None, ""
    size = sum(t.numel() * t.element_size() for t in tensors)
    if size > DEVICE_BYTES:
        return (
            None,
            (
                f"the model and its batch take {size >> 20} MB of a device, and a fork can "
                "only use the host"
            ),
        )
    return {id(t): (instead or {}).get(id(t), t).detach().to("cpu", copy=True) for t in tensors}, ""


def _repeated(
    recorder: Recorder,
    called: Called | None,
    rng: Mapping[str, Any],
    autocast: str | None,
    host: Mapping[int, torch.Tensor] | None,
    apart: bool = False,
) -> tuple[OperatorTrace | None, list[torch.Tensor]]:
    """`apart`: the model is a copy on the host, in this process."""
    if called is None:
        return None, []
    module, args, kwargs = called
    if any(hasattr(p, "to_local") for p in module.parameters()):
        return None, []  # other ranks hold the rest of its weights
    if not apart:
        _leave_ranks_alone()
    randomness.restore({**rng, "cuda": None})
    trace = OperatorTrace(recorder)
    try:
        if host is not None:
            args, kwargs = map_tensors([list(args), kwargs], lambda path, t: host[id(t)])
            if not apart:
                for parameter in module.parameters():
                    parameter.grad = None
                module._apply(lambda t: host[id(t)])
        dtype = getattr(torch, autocast or "bfloat16")
        # The recorder's own calls are kept out of every trace; this one is the user's.
        traced = torch._C._EnableTorchFunction()
        here = contextlib.nullcontext() if host is None else on_cpu()
        with (
            traced,
            torch.autocast("cpu", dtype=dtype, enabled=autocast is not None),
            here,
            trace.stream,
            torch.enable_grad(),
        ):
            result = module(*args, **kwargs)
    except Exception:  # a call that cannot be repeated: the graph of the first one is still there
        return None, []
    return trace, [t for t in Call("", (), {}, result).outputs() if t.is_floating_point()]


def _leave_ranks_alone() -> None:
    """A fork has its parent's connections: a collective of the model's would be heard by the other
    ranks.
    """
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is not None:
        c10d.GroupMember.WORLD = None
        c10d._world.pg_map.clear()


def described(call: Call | None, grad: torch.Tensor | None = None) -> Recorded | None:
    """As a bundle holds it, after a run of it has shown the same: state outside of an operator is
    not kept.
    """
    if call is None:
        return None
    plain = call.copied()
    found: Recorded = {
        "function": call.name,
        "args": list(plain.args),
        "kwargs": plain.kwargs,
        "autocast": call.autocast,
        "gives": "value" if grad is None else "gradient",
        "site": str(call.site) if call.site is not None else None,
        "grad": grad.detach().to("cpu", copy=True) if grad is not None else None,
    }
    try:
        given = outcome_of(found)
    except Exception:  # no operator that can be called by its name
        return None
    return {**found, "prints": given["prints"]} if given["bad"] else None


def outcome_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """Executes a recorded operator, on one thread: {bad: numbers that are not finite, of: all,
    prints: of every result}.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        values = _values(call)
    finally:
        torch.set_num_threads(threads)
    of = sum(t.numel() for t in values)
    bad = sum(int((~torch.isfinite(t)).sum()) for t in values)
    return {"bad": bad, "of": of, "prints": [fingerprint(t) for t in values]}


def _values(call: Mapping[str, Any]) -> list[torch.Tensor]:
    if call.get("gives") != "gradient":
        with torch.no_grad():
            outputs = Call("", (), {}, run_call(call)).outputs()
        return [t for t in outputs if t.is_floating_point() or t.is_complex()]
    leaves = Call(str(call["function"]), tuple(call["args"]), dict(call["kwargs"])).on_leaves()
    with torch.enable_grad():
        result = run_call({**call, "args": list(leaves.args), "kwargs": leaves.kwargs})
        grad = call["grad"]
        output = next(
            (
                t
                for t in Call("", (), {}, result).outputs()
                if t.requires_grad and t.shape == grad.shape
            ),
            None,
        )
        if output is None:
            return []
        output.backward(grad)
    return [t.grad for t in leaves.inputs() if t.grad is not None]


def _in_a_fork(find: Callable[[], Recorded | None], limit: int) -> tuple[Recorded | None, str]:
    answer, written = in_a_fork(partial(_write, find, limit), SECONDS)
    if answer != "found":
        return None, answer
    head, _, content = written.partition(b"\n")
    return unpack(json.loads(head), codec.read(Path("call"), content)), ""


def _write(find: Callable[[], Recorded | None], limit: int, file: Any) -> str:
    found = find()
    if found is None:
        return NOTHING
    packer, text = _packed(found)
    if why := _too_much(packer, limit):
        return why
    file.write(text.encode() + b"\n")
    codec.write(packer.tensors, file.write)
    return "found"


def _packed(found: Recorded) -> tuple[Packer, str]:
    packer = Packer()
    return packer, json.dumps(packer.pack(found))


def _too_much(packer: Packer, limit: int) -> str:
    size = codec.num_bytes(packer.tensors)
    return (
        f"it was given {size / (1 << 20):.0f} MB, or what a file cannot hold"
        if packer.left_out or size > limit
        else ""
    )
