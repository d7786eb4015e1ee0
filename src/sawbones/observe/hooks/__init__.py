"""One file per place that touches torch. Each has install(recorder, patches); the originals come
back on exit.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from sawbones.observe.deep import Originals
from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install_all(recorder: Recorder) -> Patches:
    patches = Patches()
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    # all before the first is installed: what they take from torch is torch's own
    modules = {name: importlib.import_module(f"{__name__}.{name}") for name in names}
    for name, module in modules.items():
        recorder.guard(f"hook {name}", module.install, recorder, patches)
    recorder.torch_before = Originals()
    return patches
