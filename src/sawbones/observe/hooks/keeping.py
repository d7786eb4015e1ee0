"""Under `diagnose`: what the script keeps at its best score is looked at after steps.

Installed before the hooks that number the steps: the one that is over is not counted yet.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from sawbones.observe.patches import Patches
from sawbones.observe.signals.kept_weights import KeptLog

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    if not recorder.options.journal:
        return
    log = KeptLog(recorder.sites)

    def stepped(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if recorder.is_host():
            params = [p for group in optimizer.param_groups for p in group["params"]]
            recorder.guard("kept weights", look, 1, params, sys._getframe(1))

    def stepped_by_hand(params: list[torch.Tensor]) -> None:
        # seen when the next backward pass begins: no step since the script could last keep anything
        look(0, params, sys._getframe(1))

    def look(num_since: int, params: list[torch.Tensor], frame: FrameType) -> None:
        done = recorder.step + 1
        log.look(params, (done - num_since, done), frame)

    def finish() -> None:
        recorder.facts["kept_weights"] = log.record()

    patches.on_exit(register_optimizer_step_post_hook(stepped).remove)
    recorder.steps.on_manual_step.append(stepped_by_hand)
    recorder.at_the_end.append(finish)
