"""A tracker for Accelerate:

from sawbones.integrations.accelerate import SawbonesTracker

accelerator = Accelerator(log_with=SawbonesTracker())
accelerator.init_trackers("my-project")     # recorded from here
...
accelerator.end_training()                  # to here
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sawbones.integrations.recording import Recording
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError

try:
    from accelerate.tracking import GeneralTracker
except ImportError as error:
    raise SawbonesError(
        "sawbones.integrations.accelerate needs accelerate: pip install accelerate"
    ) from error


class SawbonesTracker(GeneralTracker):  # type: ignore[misc]
    """Records what happens between init_trackers and end_training as `sawbones run` does. Accelerate
    before 1.8 tells no tracker that a training begins: there it records from where it is made.

    out: the folder of the recording (default: a new one in .sawbones/). summary: whether anything
    is printed. to: a tracker that is told what was found, e.g. "wandb" (docs/how-to/trackers.md).
    After the end, `run` holds the recording and `folder` says where it is.
    """

    name = "sawbones"
    requires_logging_directory = False
    main_process_only = False  # every rank has a recording of its own

    def __init__(
        self, out: str | Path | None = None, summary: bool = True, to: str | None = None
    ) -> None:
        super().__init__()
        self._recording = Recording("accelerate.Accelerator", out, summary, to)
        self.run: Run | None = None
        if not hasattr(GeneralTracker, "start"):
            self._recording.begin()

    @property
    def folder(self) -> Path | None:
        return self._recording.folder

    @property
    def tracker(self) -> Path | None:
        return self.folder

    def start(self) -> None:
        self._recording.begin()

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self._recording.begin()

    def log(self, values: dict[str, Any], step: int | None = None, **more: Any) -> None:
        self._recording.begin()
        self._recording.log(values, step)

    def finish(self) -> None:
        self.run = self._recording.end()
