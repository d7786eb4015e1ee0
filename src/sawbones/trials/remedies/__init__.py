"""Virtual fixes: one file each with install(recorder, **params). They act in the child process
only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def took_hold(recorder: Any, remedy: str) -> None:
    """Once more, for the run to say: a remedy that never met what it changes shows nothing."""
    counts = recorder.facts.setdefault("remedies", {})
    counts[remedy] = counts.get(remedy, 0) + 1


def during_steps(change: Callable[[Any, dict[str, Any]], dict[str, Any]]) -> None:
    """Every optimizer sees other settings during its steps only: what `change` makes of the
    optimizer and a group, as far as the group has them.
    """
    from torch.optim import optimizer as optimizers

    held: dict[int, list[dict[str, Any]]] = {}

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        held[id(optimizer)] = []
        for group in optimizer.param_groups:
            own = {n: v for n, v in group.items() if v is not None}
            changed = {n: v for n, v in change(optimizer, own).items() if n in own}
            held[id(optimizer)].append({n: own[n] for n in changed})
            group.update(changed)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        for group, kept in zip(optimizer.param_groups, held.pop(id(optimizer), []), strict=False):
            group.update(kept)

    optimizers.register_optimizer_step_pre_hook(before)
    optimizers.register_optimizer_step_post_hook(after)
