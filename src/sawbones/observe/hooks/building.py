"""nn.Module.__init__: where every layer and criterion was made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.observe import origins
from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    def make(original: Any) -> Any:
        def __init__(self: nn.Module, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if not torch.compiler.is_compiling() and recorder.is_host():
                recorder.guard("building", built, self, sys._getframe(1))

        return __init__

    def built(module: nn.Module, frame: Any) -> None:
        site = recorder.sites.find(origins.maker_frame(frame, module))
        if site is not None:
            origins.remember(module, site)

    patches.replace(nn.Module, "__init__", make)
