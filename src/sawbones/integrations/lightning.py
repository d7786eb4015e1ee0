"""A callback for Lightning:

from sawbones.integrations.lightning import SawbonesCallback

Trainer(max_epochs=3, callbacks=[SawbonesCallback()]).fit(module, data)
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.integrations.recording import Recording
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError


def _callback_class() -> Any:
    """Of the package that the program uses: it goes by two names."""
    names = sorted(("lightning.pytorch", "pytorch_lightning"), key=lambda n: n not in sys.modules)
    for name in names:
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    raise SawbonesError(
        "sawbones.integrations.lightning needs lightning or pytorch-lightning: "
        "pip install lightning"
    )


if TYPE_CHECKING:
    _Callback = object
else:
    _Callback = _callback_class()


class SawbonesCallback(_Callback):
    """Records the fit as `sawbones run` does, with live warnings and a summary at the end.

    out: the folder of the recording (default: a new one in .sawbones/). summary: whether anything
    is printed. to: a tracker that is told what was found, e.g. "wandb" (docs/how-to/trackers.md).
    After the fit, `run` holds the recording and `folder` says where it is.
    """

    def __init__(
        self, out: str | Path | None = None, summary: bool = True, to: str | None = None
    ) -> None:
        super().__init__()
        self._recording = Recording("lightning.Trainer", out, summary, to)
        self.run: Run | None = None
        self._last: dict[str, Any] = {}  # as it was when it was last looked at
        self._logged_at: dict[str, int] = {}  # name -> the trainer's step

    @property
    def folder(self) -> Path | None:
        return self._recording.folder

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._recording.begin()
        self._last, self._logged_at = {}, {}

    def on_train_batch_start(self, trainer: Any, *more: Any) -> None:
        if _is_due(trainer, trainer.global_step + 1):
            self._last = _metrics(trainer)

    def on_train_batch_end(self, trainer: Any, *more: Any) -> None:
        """As often as the trainer tells its loggers: reading a value waits for the device. And what
        it tells them: `loss` may be the mean of the epoch, and `loss_step` that of the batch.
        """
        if _is_due(trainer, trainer.global_step):
            self._log(trainer, set(trainer.logged_metrics))

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._last = _metrics(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self._log(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._log(trainer)

    def _log(self, trainer: Any, only: Container[str] | None = None) -> None:
        """Lightning keeps every value until a newer one takes its place: an old one would be drawn
        at steps where nothing was measured.
        """
        metrics, step = _metrics(trainer), trainer.global_step
        news = {
            name: value
            for name, value in metrics.items()
            if value is not self._last.get(name)
            and self._logged_at.get(name) != step
            and (only is None or name in only)
        }
        self._last = metrics
        self._logged_at |= dict.fromkeys(news, step)
        self._recording.log(news, step, trainer.current_epoch)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self.run = self._recording.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.run = self._recording.end(exception)


def _is_due(trainer: Any, step: int) -> bool:
    every = trainer.log_every_n_steps
    return bool(every and step and step % every == 0)


def _metrics(trainer: Any) -> dict[str, Any]:
    return {**trainer.callback_metrics, **trainer.logged_metrics}
