"""From the first step on, a thread looks where the training thread stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sawbones.observe.patches import Patches
from sawbones.observe.signals.standing import StandingLog, native_id_of
from sawbones.schema.standing import Standing

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    logs: list[StandingLog] = []

    def begin(_: Recorder) -> None:
        ident = recorder.threads.ident
        if logs or ident is None or "standing" in recorder.facts:
            return
        # From here on the thread only replaces what stands under a key that is there.
        recorder.facts["standing"] = Standing()
        native_id = native_id_of(ident)
        if native_id is not None:
            logs.append(StandingLog(recorder, ident, native_id))

    def end() -> None:
        while logs:
            recorder.guard("standing", logs.pop().close)

    recorder.listeners.append(begin)
    recorder.at_the_end.append(end)
    patches.on_exit(end)
