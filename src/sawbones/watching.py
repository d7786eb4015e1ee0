"""sawbones.watch: the recorder inside a notebook or a loop."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sawbones.capture.freezing import RUN_LIMIT_MB, attach
from sawbones.live import attach_live_warnings
from sawbones.observe.notebook import kernel, notebook_name
from sawbones.observe.options import Options, running
from sawbones.observe.saying import say
from sawbones.observe.sites import is_user_file
from sawbones.schema import Ending, Run
from sawbones.store import read_run
from sawbones.store.recordings import new_run_folder

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from sawbones.diagnosis import Diagnosis
    from sawbones.observe.recorder import Recorder


class Watch:
    """Records from construction until close(), or for the length of a with block."""

    def __init__(
        self,
        models: tuple[Any, ...],
        out: str | Path | None,
        options: Options,
        quiet: bool = False,
    ) -> None:
        import torch

        from sawbones.observe.launch import Session

        for thing in models:
            if not isinstance(thing, (torch.nn.Module, torch.optim.Optimizer)):
                raise TypeError(
                    f"sawbones.watch takes models and optimizers, not {type(thing).__name__}"
                )
        _close_forgotten()
        script = sys.argv[0] if sys.argv and sys.argv[0] and kernel() is None else notebook_name()
        self.folder = Path(out) if out is not None else new_run_folder(script).absolute()
        self._session = Session(
            self.folder,
            script,
            sys.argv[1:],
            options,
            os.getcwd(),
            int(os.environ.get("RANK", "0")),
        )
        self._quiet = quiet
        attach(self._session, limit_mb=RUN_LIMIT_MB)
        if not quiet:
            attach_live_warnings(self._session)
        self._session.install()
        for thing in models:
            self._introduce(thing)
        self._open = True
        self._is_block = False
        _watching.append(self)

    def _introduce(self, thing: Any) -> None:
        import torch

        census = self._session.recorder.census
        if isinstance(thing, torch.nn.Module):
            census.saw_root(thing)
        else:
            census.built(thing, None)

    @property
    def recorder(self) -> Recorder:
        """What writes the recording; for integrations."""
        recorder: Recorder = self._session.recorder
        return recorder

    @property
    def step(self) -> int:
        """Optimizer steps seen so far."""
        return int(self._session.recorder.step)

    def capture(self) -> None:
        """Writes a bundle of the step under way, or of the next one, into the run folder once its
        gradients are there.
        """
        freezer = self._session.recorder.capture
        if freezer is not None:
            freezer.ask()

    @property
    def bundles(self) -> list[Path]:
        """Captured steps so far: those that failed and those asked for."""
        freezer = self._session.recorder.capture
        return list(freezer.bundles) if freezer is not None else []

    def flush(self) -> None:
        """Puts on disk now what would be there within half a second anyway."""
        recorder = self._session.recorder
        recorder.guard("flush", recorder.brief.leave)  # short steps are handed on in bundles
        recorder.writer.flush()

    def close(self, ending: Ending | None = None) -> Run:
        if self._open:
            self._open = False
            _watching.remove(self)
            self._session.close(ending or Ending("finished", 0))
        return read_run(self.folder)

    def recorded(self) -> Run:
        """What is there so far, or all of it after close()."""
        if not self._open:
            return read_run(self.folder)
        self.flush()
        return replace(read_run(self.folder), ending=Ending("budget", message="still recording"))

    def diagnose(self) -> Diagnosis:
        """What the checks say of what was recorded so far. Experiments need the script itself:
        `sawbones diagnose train.ipynb`.
        """
        from sawbones.diagnosis import diagnose_run

        return diagnose_run(self.recorded())

    def show(self) -> None:
        """The whole report: a page under the cell in a notebook, text in a terminal."""
        self.diagnose().show()

    def __repr__(self) -> str:
        """Short: what `w` alone prints at a prompt."""
        state = "recording" if self._open else "closed"
        return f"Watch: {state}, {self.step} steps, {self.folder}. More: .diagnose(), .show()"

    def _repr_html_(self) -> str | None:
        """Under a cell of a notebook; nothing before the first step, where text is enough."""
        return self.diagnose()._repr_html_() if self.step else None

    def __enter__(self) -> Watch:
        self._is_block = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            recorder = self._session.recorder
            if recorder.capture is not None and tb is not None:
                frames = [f for f, _ in walk_tb(tb)]
                inner = next(
                    (
                        recorder.sites.of_frame(f)
                        for f in reversed(frames)
                        if is_user_file(f.f_code.co_filename)
                    ),
                    None,
                )
                recorder.guard("capture", recorder.capture.crashed, error, inner)
            self.close(Ending("exception", 1, type(error).__name__, str(error)[:2000]))
        if not self._quiet:
            self._say_how_it_went()

    def _say_how_it_went(self) -> None:
        from sawbones.diagnosis.closing import closing_lines

        try:
            say("\n".join(closing_lines(self.folder, RUN_LIMIT_MB)))
        except Exception as failure:  # the block's own end stands, whatever becomes of our words
            say(f"sawbones: no summary of {self.folder}: {failure}")


_watching: list[Watch] = []


def _close_forgotten() -> None:
    """A cell that is run again starts a second recording: the first, which no name holds any more,
    ends there. Elsewhere, two recordings at a time are the caller's business.
    """
    if kernel() is None:
        return
    for forgotten in [w for w in _watching if not w._is_block]:
        forgotten.close()
        say(f"sawbones: the recording {forgotten.folder} was still open and ends here")


def watch(
    *things: nn.Module | Optimizer,
    out: str | Path | None = None,
    options: Options | None = None,
    quiet: bool = False,
) -> Watch:
    """Record everything that happens from here on; models and optimizers may be named, and are
    found by themselves otherwise. As a `with` block it warns while it runs and ends with a summary
    on standard error, unless `quiet`.
    """
    return Watch(things, out, options or running(), quiet)
