"""nn.Module.__init__ and register_buffer: where every layer, criterion and constant was made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from sawbones.observe import origins
from sawbones.observe.patches import Patches
from sawbones.schema import Site
from sawbones.schema.one_off import Buffer

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


_MAX_BUFFERS = 100


def install(recorder: Recorder, patches: Patches) -> None:
    buffers: dict[Site, Buffer] = {}

    def make_buffer(original: Any) -> Any:
        def register_buffer(
            self: nn.Module, name: str, tensor: Any, *args: Any, **kwargs: Any
        ) -> None:
            original(self, name, tensor, *args, **kwargs)
            if (
                isinstance(tensor, torch.Tensor)
                and not torch.compiler.is_compiling()
                and recorder.is_host()
            ):
                recorder.guard("building", kept, tensor, sys._getframe(1))

        return register_buffer

    def kept(tensor: torch.Tensor, frame: Any) -> None:
        site = recorder.sites.find(frame)
        if nn.parameter.is_lazy(tensor):  # no shape yet
            return
        if site is not None and len(buffers) < _MAX_BUFFERS:
            dtype = str(tensor.dtype).removeprefix("torch.")
            buffers.setdefault(site, Buffer(tuple(tensor.shape), dtype, site))
            recorder.facts["buffers"] = list(buffers.values())

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
    patches.replace(nn.Module, "register_buffer", make_buffer)
