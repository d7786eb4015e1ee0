"""Generation with a cache: what single-token calls answered, against one full pass over the same
tokens.

Under `diagnose` only, and at most a few times per run. The full pass runs on a copy of the model
with a copy of the arguments of the first call, so neither the user's cache nor the model sees it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.observe.calls import is_training
from sawbones.observe.deep.guard import untouched
from sawbones.observe.deep.observer import DeepObserver
from sawbones.observe.patches import Patches
from sawbones.observe.tracing import is_tracing
from sawbones.properties.inputs import tensors_in
from sawbones.schema.one_off import Decoding

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_MAX_PARAMETERS = 20_000_000
_STEPS = 4
_CHAINS = 6
_ALIKE = 1e-3  # the full pass has to repeat the first call's answer, or the two can't be compared


class _Chain:
    """One generation: the first call as it was, and the tokens and answers of those that
    followed.
    """

    def __init__(self, module: nn.Module, call: Any, tokens: torch.Tensor, given: bool) -> None:
        self.module, self.call, self.tokens = module, call, tokens
        self.given = (
            given  # a cache came with the first call; else the model makes one and hands it back
        )
        self.copy: nn.Module | None = copy.deepcopy(module) if given else None
        self.first: torch.Tensor | None = None
        self.handed: set[int] = set()  # what the first call gave back beside its scores
        self.fed: list[torch.Tensor] = []
        self.answers: list[torch.Tensor] = []


class CachedDecoding:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._chain: _Chain | None = None
        self._started = 0
        self.done = False
        self.inside = (
            False  # a call of the whole model is under way; those of its parts are not looked at
        )

    def before(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> torch.Tensor | None:
        tokens = next(
            (t for t in tensors_in((args, kwargs)) if t.dim() == 2 and t.dtype == torch.long), None
        )
        if tokens is None or is_training(module):
            return None
        chain = self._chain
        beside = [
            v
            for v in (*args, *kwargs.values())
            if not isinstance(v, torch.Tensor) and v is not None
        ]
        follows = (
            chain is not None
            and chain.module is module
            and tokens.shape == (chain.tokens.shape[0], 1)
        )
        # A cache that the model made: the next call has to bring it, or it belongs to another
        # generation.
        if not follows or (
            chain is not None
            and not chain.given
            and not chain.fed
            and not _things_in(beside) & chain.handed
        ):
            self._chain = None
            keeps = len(args) + len(kwargs) > 1 and any(
                not isinstance(v, torch.Tensor) for v in (*args, *kwargs.values())
            )
            small = sum(p.numel() for p in module.parameters()) <= _MAX_PARAMETERS
            if keeps and self._started < _CHAINS and small:
                self._started += 1
                self._chain = _Chain(
                    module, copy.deepcopy((args, kwargs)), tokens.detach().clone(), True
                )
            elif not keeps and small and len(args) + len(kwargs) == 1:
                # Nothing to copy yet: most such calls are no generation at all.
                kept = tokens.detach().clone()
                self._chain = _Chain(
                    module,
                    ((kept,), {}) if args else ((), dict.fromkeys(kwargs, kept)),
                    kept,
                    False,
                )
        return tokens

    def after(self, tokens: torch.Tensor, output: Any) -> None:
        chain = self._chain
        scores = _scores(output)
        if chain is None or scores is None:
            return
        last = scores[:, -1].detach().clone()
        if chain.first is None:
            chain.first = last
            chain.handed = _things_in(output)
            return
        chain.fed.append(tokens.detach().clone())
        chain.answers.append(last)
        if len(chain.fed) == _STEPS:
            self._chain = None
            self._compare(chain)

    def _compare(self, chain: _Chain) -> None:
        whole = torch.cat([chain.tokens, *chain.fed], 1)
        args, kwargs = _with_tokens(chain.call, chain.tokens, whole)
        recorder = self._recorder
        depth, recorder.depth = recorder.depth, 1
        DeepObserver.busy = True
        try:
            model = chain.copy if chain.copy is not None else copy.deepcopy(chain.module)
            with torch._C.DisableTorchFunction(), torch.no_grad(), untouched([model]):
                scores = _scores(model(*args, **kwargs))
        except Exception:
            return  # other arguments belong to the first call's length: the two can't be compared
        finally:
            recorder.depth = depth
            DeepObserver.busy = False
        if scores is None or scores.shape[1] != whole.shape[1] or chain.first is None:
            return
        start = chain.tokens.shape[1] - 1
        if _distance(chain.first, scores[:, start]) > _ALIKE:
            return
        distances = [
            _distance(answer, scores[:, start + 1 + i]) for i, answer in enumerate(chain.answers)
        ]
        recorder.facts["decoding"] = Decoding(
            tuple(distances), start + 1, recorder.step, recorder.sites.find()
        )
        self.done = True


def _things_in(value: Any) -> set[int]:
    """Objects and memory that a value is made of: by these a cache is known again."""
    parts = (
        list(value.values())
        if isinstance(value, dict)
        else list(value)
        if isinstance(value, (list, tuple))
        else []
    )
    things = {
        id(part)
        for part in parts
        if not isinstance(part, (torch.Tensor, bool, int, float, str, type(None)))
    }
    return things | {t.data_ptr() for t in tensors_in(value) if t.numel()}


def _scores(output: Any) -> torch.Tensor | None:
    values = getattr(output, "logits", output)
    floats = [t for t in tensors_in(values) if t.is_floating_point() and t.dim() == 3]
    return floats[0].float() if floats else None


def _distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.float() - b.float()).norm() / (b.float().norm() + 1e-12))


def _with_tokens(
    call: Any, old: torch.Tensor, new: torch.Tensor
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = call

    def swap(value: Any) -> Any:
        same = (
            isinstance(value, torch.Tensor)
            and value.shape == old.shape
            and value.dtype == old.dtype
            and bool((value == old).all())
        )
        return new if same else value

    return tuple(swap(v) for v in args), {k: swap(v) for k, v in kwargs.items()}


def install(recorder: Recorder, patches: Patches) -> None:
    if not recorder.options.probe:
        return
    watcher = CachedDecoding(recorder)

    def make_call(original: Any) -> Any:
        def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            apart = (
                watcher.inside
                or watcher.done
                or torch.is_grad_enabled()
                or not recorder.active
                or DeepObserver.busy
            )
            if apart or is_tracing() or not recorder.is_host():
                return original(self, *args, **kwargs)
            tokens = recorder.guard("decoding", watcher.before, self, args, kwargs)
            watcher.inside = True
            try:
                output = original(self, *args, **kwargs)
            finally:
                watcher.inside = False
            if tokens is not None:
                recorder.guard("decoding", watcher.after, tokens, output)
            return output

        return __call__

    patches.replace(nn.Module, "__call__", make_call)
