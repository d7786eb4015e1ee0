"""Gradients taken by torch.func: `grad` and `grad_and_value` of a pure function, whose arguments are
the parameters. Under `diagnose`, in loops without a backward pass: there they take its place, whether
parameters are updated by hand or by an optimizer that is handed the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree

from sawbones.observe import hand_stepped
from sawbones.observe.interrupts import HOLDING
from sawbones.observe.patches import Patches
from sawbones.observe.tracing import is_tracing

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    if not recorder.options.journal:
        return
    # the one place that both ways lead to, however they were imported
    from torch._functorch import eager_transforms

    inside = torch._C._functorch.peek_interpreter_stack

    def make(original: Any) -> Any:
        def grad_and_value_impl(
            func: Callable[..., Any],
            argnums: Any,
            has_aux: bool,
            args: tuple[Any, ...],
            kwargs: Mapping[str, Any],
        ) -> Any:
            # Inside of another transform the gradient is a part of what that computes.
            nested = inside() is not None
            if nested or is_tracing() or HOLDING.depth or not recorder.trains_here():
                return original(func, argnums, has_aux, args, kwargs)
            params = _asked_for(args, argnums)
            if recorder.census.optimizers():
                if not _for_an_optimizer(recorder, params):
                    return original(func, argnums, has_aux, args, kwargs)
                recorder.guard("deep", recorder.start_deep)
                if recorder.deep is not None:
                    func = _looked_into(recorder, func, has_aux)
                result = original(func, argnums, has_aux, args, kwargs)
                loss = result[1][0] if has_aux else result[1]
                recorder.guard("backward", recorder.backward_begins, loss, None)
                recorder.guard("backward", recorder.backward_ends)
                return result
            asks = recorder.steps.asks_for
            if not params or not recorder.guard("backward", asks, params, True):
                return original(func, argnums, has_aux, args, kwargs)
            recorder.guard("deep", hand_stepped.transform_begins, recorder)
            if recorder.deep is not None:
                func = _looked_into(recorder, func, has_aux)
            result = original(func, argnums, has_aux, args, kwargs)
            gradients, value = result
            # The loss is known only now; what the pass is asked about has not changed since.
            loss = value[0] if has_aux else value
            recorder.guard("backward", recorder.backward_begins, loss, None)
            recorder.guard("backward", recorder.steps.got, _pytree.tree_leaves(gradients))
            recorder.guard("backward", recorder.backward_ends)
            return result

        return grad_and_value_impl

    patches.replace(eager_transforms, "grad_and_value_impl", make)


def _for_an_optimizer(recorder: Recorder, params: list[torch.Tensor]) -> bool:
    """All are an optimizer's own, and none is part of a graph that a backward pass may go through
    later: parameters that require gradients may be differentiated twice, until a step was taken
    without any backward pass.
    """
    if recorder.steps.heard_backward or not params:
        return False
    held = {
        id(p) for o in recorder.census.optimizers() for g in o.param_groups for p in g["params"]
    }
    plain = recorder.step > 0 or not any(p.requires_grad for p in params)
    return plain and all(id(p) in held for p in params)


def _looked_into(recorder: Recorder, func: Any, has_aux: bool) -> Any:
    """The graph of a deep step exists inside of the transform only."""

    def watched(*args: Any, **kwargs: Any) -> Any:
        output = func(*args, **kwargs)
        deep, loss = recorder.deep, output[0] if has_aux and isinstance(output, tuple) else output
        if deep is not None and isinstance(loss, torch.Tensor):
            recorder.deep_backward_seen = True
            recorder.guard("deep", deep.before_backward, loss)
        return output

    return watched


def _asked_for(args: tuple[Any, ...], argnums: Any) -> list[torch.Tensor]:
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    chosen = [args[n] for n in numbers if -len(args) <= n < len(args)]
    leaves = _pytree.tree_leaves(chosen)
    plain = all(isinstance(leaf, torch.Tensor) and leaf.is_floating_point() for leaf in leaves)
    return leaves if plain else []
