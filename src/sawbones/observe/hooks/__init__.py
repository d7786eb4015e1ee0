"""One file per place that touches torch. Each has install(recorder, patches); the originals come
back on exit.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from sawbones.observe.deep import originals
from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install_all(recorder: Recorder) -> Patches:
    patches = Patches()
    for found in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        module = importlib.import_module(f"{__name__}.{found.name}")
        recorder.guard(f"hook {found.name}", module.install, recorder, patches)
    originals.remember()
    return patches
