"""What the callbacks of all trainers share: one recording, from the begin of a training to its end.

Where `sawbones run` or `sawbones.watch` records already, nothing is recorded twice: what the
trainer logs goes into that recording.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.integrations.trackers import known, tell_of_run
from sawbones.schema.one_off import Framework

if TYPE_CHECKING:
    from sawbones.observe.recorder import Recorder
    from sawbones.schema import Run
    from sawbones.watching import Watch


class Recording:
    def __init__(
        self, framework: str, out: str | Path | None, summary: bool, to: str | None = None
    ) -> None:
        self._framework, self._out, self._summary, self._to = framework, out, summary, to
        if to is not None:
            known(to)  # a name that is wrong is said now, not after the training
        self._watch: Watch | None = None
        self._recorder: Recorder | None = None
        self.folder: Path | None = None

    def begin(self) -> None:
        """Once per training; a second call while one is under way does nothing."""
        if self._recorder is not None:
            return
        from sawbones.observe.launch import current_recorder
        from sawbones.watching import watch

        self._recorder = current_recorder()
        if self._recorder is None:
            self._watch = watch(out=self._out, quiet=not self._summary)
            self._recorder = self._watch.recorder
            atexit.register(self._left_open)
        self.folder = Path(self._recorder.folder)
        name, _, _ = self._framework.partition(".")
        version = getattr(sys.modules.get(name), "__version__", "")
        self._recorder.facts["framework"] = Framework(self._framework, version)

    def log(
        self, metrics: Mapping[str, Any], step: int | None = None, epoch: float | None = None
    ) -> None:
        """Numbers under the trainer's own names, at its own step and epoch."""
        if self._recorder is None:
            return
        numbers = {name: _number(value) for name, value in metrics.items()}
        known = {name: value for name, value in numbers.items() if value is not None}
        if known:
            self._recorder.logged.add(self._recorder.step, step, epoch, known)

    def _left_open(self) -> None:
        """At the end of the process: the trainer did not pass on what ended the training, and
        Python keeps the last exception that nobody caught.
        """
        self.end(getattr(sys, "last_value", None))

    def end(self, error: BaseException | None = None) -> Run | None:
        """The recording, where this one has made it; None where another session goes on."""
        watch, self._watch, self._recorder = self._watch, None, None
        if watch is None:
            return None
        atexit.unregister(self._left_open)
        from sawbones.schema import Ending

        if error is None:
            run = watch.close()
        else:
            kind, text = type(error).__name__, str(error)[:2000]
            run = watch.close(Ending("exception", 1, kind, text))
        if self._summary and run.rank == 0:
            _say_summary(run)
        if self._to is not None and run.rank == 0:
            tell_of_run(run, self._to)
        return run


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # text, lists, tensors of several values
        return None


def _say_summary(run: Run) -> None:
    from sawbones.diagnosis import diagnose_run
    from sawbones.observe.saying import say
    from sawbones.report.summary import run_summary

    report = diagnose_run(run).report
    lines = [run_summary(run, report.symptoms)]
    for finding in report.findings:
        if finding.status != "suspected":
            where = f"{finding.where[0]}: " if finding.where else ""
            lines.append(f"  found      {finding.fault} ({finding.status}) {where}{finding.title}")
    say("\n".join(lines))
