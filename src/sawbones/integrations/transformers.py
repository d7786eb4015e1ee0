"""A callback for the Trainer of Hugging Face transformers:

from sawbones.integrations.transformers import SawbonesCallback

Trainer(model, args, train_dataset=data, callbacks=[SawbonesCallback()]).train()
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sawbones.integrations.recording import Recording
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise SawbonesError(
        "sawbones.integrations.transformers needs transformers: pip install transformers"
    ) from error


class SawbonesCallback(TrainerCallback):  # type: ignore[misc]
    """Records the training as `sawbones run` does, with live warnings and a summary at the end.

    out: the folder of the recording (default: a new one in .sawbones/). summary: whether anything
    is printed. to: a tracker that is told what was found, e.g. "wandb" (docs/how-to/trackers.md).
    After training, `run` holds the recording and `folder` says where it is.
    """

    def __init__(
        self, out: str | Path | None = None, summary: bool = True, to: str | None = None
    ) -> None:
        self._recording = Recording("transformers.Trainer", out, summary, to)
        self.run: Run | None = None

    @property
    def folder(self) -> Path | None:
        return self._recording.folder

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._recording.begin()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **more: Any
    ) -> None:
        self._recording.log(logs or {}, state.global_step, state.epoch)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.run = self._recording.end()
