"""A script of under 60 lines that needs only torch and fails as the captured step does: the
operator at fault, with its values.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sawbones.capture import operators
from sawbones.capture.literals import Unwritable, Writing
from sawbones.capture.operators import Call, OperatorTrace
from sawbones.capture.reduction import Reducer
from sawbones.masking import mask, shown_line

if TYPE_CHECKING:
    from sawbones.capture.bundle import Bundle

NAME = "reproduce.py"
MAX_LINES = 60
MAX_CHAIN = 30


def explain(
    trace: OperatorTrace,
    bundle: Bundle,
    outcome: dict[str, Any],
    folder: Path,
    ordered: list[str] | None = None,
) -> dict[str, Any]:
    """Names the operator, writes the script. In the process that has just executed the step.

    `ordered`: the calls that show the failure where it is one of their order. Native code may die
    of arguments that were cut to pieces, so making them smaller is done in a fork; if that does not
    come back, they stay as they are.
    """
    if ordered is not None:
        lines = [*_head(bundle), "", *ordered]
        (folder / NAME).write_text(mask("\n".join(lines)) + "\n", encoding="utf-8")
        return {"lines": ["the order of calls is at fault, not an operator"], "script": NAME}
    with torch._C.DisableTorchFunction():
        kind = str(outcome.get("kind"))
        try:
            if torch.cuda.is_initialized():
                return _explain(trace, bundle, outcome, kind, folder, smaller=False)
            for smaller in (True, False):
                found = in_a_fork(partial(_explain, trace, bundle, outcome, kind, folder, smaller))
                if found is not None:
                    return found
            return {
                "lines": ["no script: the operator's process died"],
                "why": "the operator's process died",
            }
        except Unwritable as error:
            return {"lines": [f"no script: {error}"], "why": str(error)}
        except Exception as error:  # the outcome of the step counts for more than a script of it
            text = f"{type(error).__name__}: {str(error)[:200]}"
            return {"lines": [f"no script: {text}"], "why": text}


def _explain(
    trace: OperatorTrace,
    bundle: Bundle,
    outcome: dict[str, Any],
    kind: str,
    folder: Path,
    smaller: bool,
) -> dict[str, Any]:
    head = _head(bundle)
    if kind == "exception":
        if trace.failed is None:
            return {
                "lines": ["the exception was not raised by an operator of torch"],
                "why": "no operator of torch raised the exception",
            }
        call = trace.failed
        reducer = Reducer(
            call, _raises(str(outcome.get("exception")), str(outcome.get("message"))), smaller
        )
        lines = _script_of_exception(reducer.reduced(), head)
    elif kind == "nonfinite loss":
        found = operators.first_nonfinite(trace)
        if found is None:
            return {
                "lines": ["no operator gave a value that is not finite"],
                "why": "no operator gave a value that is not finite",
            }
        call = found
        lines = _script_of_nonfinite(Reducer(call, _gives_nonfinite, smaller).reduced(), head)
    elif kind == "nonfinite gradient":
        pair = operators.first_nonfinite_gradient(trace)
        after = operators.first_nonfinite(
            trace
        )  # clipping and scaling work on gradients with operators of their own
        if pair is not None:
            call, grad = pair
            lines = _script_of_gradient(*_reduced_gradient(call, grad, smaller), head)
        elif after is not None:
            call = after
            lines = _script_of_nonfinite(Reducer(call, _gives_nonfinite, smaller).reduced(), head)
        else:
            return {
                "lines": ["no operator's gradient turned non-finite by itself"],
                "why": "no single operator is at fault",
            }
    else:
        call, lines = _script_of_loss(trace, bundle, outcome, head)
    if len(lines) >= MAX_LINES:
        raise Unwritable(f"the script would have {len(lines)} lines")
    (folder / NAME).write_text(mask("\n".join(lines)) + "\n", encoding="utf-8")
    return {"lines": _shown(call), "script": NAME, "operator": call.name}


def in_a_fork(act: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """What it returns, None where the fork died."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        try:
            try:
                found = act()
            except Unwritable as error:
                found = {"lines": [f"no script: {error}"], "why": str(error)}
            os.write(send, json.dumps(found).encode()[:60_000])
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    try:
        answer: dict[str, Any] = json.loads(content)
    except ValueError:
        return None
    return answer


def _head(bundle: Bundle) -> list[str]:
    text = bundle.failure.text.replace("\\", "/").replace('"""', "'''")
    title = f'"""{bundle.script}, step {bundle.step}: {text[:90]}'
    return [
        title,
        "",
        (
            "Made by `sawbones shrink`. It needs torch and nothing else, and it fails as that "
            'step did."""'
        ),
        "",
        "import torch",
    ]


def _shown(call: Call) -> list[str]:
    inputs = ", ".join(_range(t) for t in call.inputs()[:4])
    where = f" at {call.site}" if call.site is not None else ""
    return [f"operator {call.name}{where}: {inputs}"]


def _range(tensor: torch.Tensor) -> str:
    kind = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
    if not tensor.numel() or tensor.dtype is torch.bool or tensor.is_complex():
        return kind
    wide = tensor.detach().double()
    return f"{kind} in [{float(wide.min()):.4g}, {float(wide.max()):.4g}]"


# what must remain true of a smaller call


def _raises(exception: str, message: str) -> Any:
    from sawbones.capture.trials import shape_of

    def holds(call: Call) -> bool:
        try:
            call.again()
        except Exception as error:
            return type(error).__name__ == exception and shape_of(str(error)) == shape_of(message)
        return False

    return holds


def _gives_nonfinite(call: Call) -> bool:
    """Not finite out of inputs that are as good as they were: an input must not become NaN on the
    way.
    """
    try:
        result = call.again()
    except Exception:
        return False
    return not operators.is_finite(Call("", (), {}, result).outputs())


def _reduced_gradient(call: Call, grad: torch.Tensor, smaller: bool) -> tuple[Call, torch.Tensor]:
    """The gradient of the output is one more argument of the call while it is made smaller."""
    extended = Call(
        call.name,
        call.args,
        {**call.kwargs, "__grad__": grad},
        None,
        call.site,
        call.in_model,
        call.autocast,
        call.func,
    )
    reduced = Reducer(extended, _gives_nonfinite_gradient, smaller).reduced()
    kwargs = dict(reduced.kwargs)
    return Call(
        reduced.name, reduced.args, kwargs, None, call.site, False, call.autocast, call.func
    ), kwargs.pop("__grad__")


def _gives_nonfinite_gradient(call: Call) -> bool:
    kwargs = dict(call.kwargs)
    grad = kwargs.pop("__grad__")
    leaves = Call(
        call.name, call.args, kwargs, None, None, False, call.autocast, call.func
    ).on_leaves()
    try:
        with torch.enable_grad():
            result = leaves.again()
            output = next(
                t
                for t in Call("", (), {}, result).outputs()
                if t.requires_grad and t.shape == grad.shape
            )
            output.backward(grad)
    except Exception:
        return False
    return any(t.grad is not None and not operators.is_finite([t.grad]) for t in leaves.inputs())


# the scripts


def _script_of_exception(call: Call, head: list[str]) -> list[str]:
    writing = Writing()
    code = writing.call(call)
    return [
        *head,
        *writing.imports(),
        "",
        *writing.lines,
        *_where(call),
        *_in_autocast(call, [code]),
    ]


def _script_of_nonfinite(call: Call, head: list[str]) -> list[str]:
    writing = Writing()
    code = writing.call(call)
    one = isinstance(call.again(), torch.Tensor)
    finite = (
        "torch.isfinite(result).all()"
        if one
        else "all(torch.isfinite(r).all() for r in result if torch.is_tensor(r))"
    )
    return [
        *head,
        *writing.imports(),
        "",
        *writing.lines,
        *_where(call),
        *_in_autocast(call, [f"result = {code}"]),
        "print(result)",
        f'assert {finite}, "not finite"',
    ]


def _script_of_gradient(call: Call, grad: torch.Tensor, head: list[str]) -> list[str]:
    call.kwargs.pop("__grad__", None)
    writing = Writing()
    leaves = call.on_leaves()
    code = writing.call(leaves)
    names = [writing.names[id(t)] for t in leaves.inputs() if t.requires_grad]
    given = writing.tensor(grad)
    checks = ", ".join(f"{name}.grad" for name in names)
    return [
        *head,
        *writing.imports(),
        "",
        *writing.lines,
        *(f"{name}.requires_grad_()" for name in names),
        *_where(call),
        *_in_autocast(call, [f"result = {code}"]),
        f"result.backward({given})",
        f"print({checks})",
        (
            f'assert all(g is None or torch.isfinite(g).all() for g in [{checks}]), "gradient '
            'not finite"'
        ),
    ]


def _script_of_loss(
    trace: OperatorTrace, bundle: Bundle, outcome: dict[str, Any], head: list[str]
) -> tuple[Call, list[str]]:
    """A loss that is finite and far too high: the operators outside of the model that made it, from
    what the model put out.
    """
    root = trace.root
    made = {id(t): call for call in trace.calls for t in call.outputs()}
    last = made.get(id(root)) if root is not None else None
    if last is None:
        raise Unwritable("the loss was not made by an operator of torch")
    chain: list[Call] = []
    todo = [last]
    while todo:
        call = todo.pop()
        if any(call is known for known in chain) or len(chain) >= MAX_CHAIN:
            continue
        chain.append(call)
        todo += [
            made[id(t)]
            for t in call.inputs()
            if id(t) in made and not made[id(t)].in_model and made[id(t)].writes_nothing
        ]
    chain.sort(key=lambda call: next(i for i, known in enumerate(trace.calls) if known is call))
    writing = Writing()
    body: list[str] = []
    for number, call in enumerate(chain):
        outputs = call.outputs()
        code = writing.call(call, keep=True)
        body += [*_where(call), *_in_autocast(call, [f"v{number} = {code}"])]
        if len(outputs) == 1:
            writing.names[id(outputs[0])] = f"v{number}"
            writing.alive.append(outputs[0])
    limit = bundle.failure.limit
    name = writing.names[id(root)]
    check = f"assert {name} <= {limit!r}, " if limit is not None else f"assert {name} != {name}, "
    lines = [
        *head,
        *writing.imports(),
        "",
        *writing.lines,
        *body,
        f"print({name})",
        check + '"the loss is far above all before it"',
    ]
    return last, lines


def _where(call: Call) -> list[str]:
    site = call.site
    if site is None:
        return []
    return [shown_line(f"# {site}: {site.code[:100]}" if site.code else f"# {site}")]


def _in_autocast(call: Call, lines: list[str]) -> list[str]:
    if call.autocast is None:
        return lines
    return [
        f'with torch.autocast("cpu", dtype=torch.{call.autocast}):',
        *(f"    {line}" for line in lines),
    ]
