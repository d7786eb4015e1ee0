"""The profiler of `sawbones profile`; in every other run nothing is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sawbones.observe.patches import Patches

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    if recorder.options.extra.get("profile"):
        from sawbones.observe.profiling import Profiler

        Profiler(recorder, patches)
