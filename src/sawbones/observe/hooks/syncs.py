"""Values that the host reads from a CUDA device during training: each one makes it wait until the
device has caught up.

Under `diagnose` only, in the steps whose operators the journal sees; lines and counts, no timing.
"""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from sawbones.observe.patches import Patches
from sawbones.schema import Site
from sawbones.schema.one_off import SyncLine, Syncs

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder

_MAX_LINES = 200


def install(recorder: Recorder, patches: Patches) -> None:
    journal = recorder.journal
    if journal is None or not torch.cuda.is_available():
        return
    rows: dict[
        tuple[str, Site], list[Any]
    ] = {}  # operator and line -> count, steps in which it was seen
    watched: set[int] = set()  # steps whose operators were seen

    def read(name: str, args: Any, result: Any, frame: FrameType) -> None:
        source = args[0] if args else None
        if (
            not isinstance(source, torch.Tensor)
            or source.device.type != "cuda"
            or recorder.phase != "train"
            or not recorder.step
        ):
            return
        if name == "to" and not (isinstance(result, torch.Tensor) and result.device.type == "cpu"):
            return
        watched.add(recorder.step)
        site = recorder.sites.find(frame)
        if site is None or (len(rows) >= _MAX_LINES and (name, site) not in rows):
            return
        row = rows.setdefault((name, site), [0, set()])
        row[0] += 1
        row[1].add(recorder.step)

    def note(_: Any) -> None:
        if recorder.deep is None:
            watched.add(recorder.step)
        if recorder.step in (10, 50) or recorder.step % 200 == 0:
            write()

    def write() -> None:
        lines = (SyncLine(*key, count, len(steps)) for key, (count, steps) in rows.items())
        recorder.facts["syncs"] = Syncs(len(watched), tuple(lines))

    journal.on_read = lambda *given: recorder.guard("syncs", read, *given)
    recorder.listeners.append(note)
    patches.on_exit(write)
