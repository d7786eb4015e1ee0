"""Seeding calls of torch, NumPy and the standard library."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    def make(library: str) -> Any:
        def wrap(original: Any) -> Any:
            def seed(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                if recorder.is_host():
                    given = args[0] if args else kwargs.get("seed", kwargs.get("a"))
                    value = given if isinstance(given, (int, float, str)) else None
                    recorder.guard("seed", recorder.event, "seed", {"library": library, "value": value})
                return result

            return seed

        return wrap

    patches.replace(torch, "manual_seed", make("torch"))
    patches.replace(torch.cuda, "manual_seed_all", make("cuda"))
    patches.replace(random, "seed", make("random"))
    if "numpy" in sys.modules:
        import numpy

        patches.replace(numpy.random, "seed", make("numpy"))
