"""Does the script fail later than it was watched? It is run once more, to its end, with next to
nothing recorded: that takes little more than the script itself.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from sawbones.observe.options import Options
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError
from sawbones.stats.failures import ran_out_of_memory
from sawbones.trials.bench import Bench


def cut_by_time(run: Run) -> bool:
    """The script was still going when the time for watching it was up."""
    ending = run.ending
    ended_hard = ending.kind == "killed" and not run.died and not run.aborted
    return (ending.kind == "budget" and ending.message != "steps") or ended_hard


class ToTheEnd:
    """Beside the trials where there are cores for both, before them where not."""

    def __init__(self, bench: Bench, run: Run, seconds: float, *, beside: bool) -> None:
        self._bench, self._watched = bench, run
        self._enough = False
        self._second: Future[Run | None] = Future()
        if beside:
            pool = ThreadPoolExecutor(1, "to the end")
            self._second = pool.submit(self._run, seconds)
            pool.shutdown(wait=False)
        else:
            self._second.set_result(self._run(seconds))

    def _run(self, seconds: float) -> Run | None:
        ended: Callable[[Path], bool] = lambda folder: self._enough  # noqa: E731
        options = Options(deep_steps=(), deep_every=0, full_every=50, batch_samples=0)
        try:
            return self._bench.execute(options, seconds=seconds, progress=ended)
        except SawbonesError:
            return None

    def failed_by_now(self) -> bool:
        return self._second.done() and self._failure(self._second.result()) is not None

    def end(self) -> None:
        """Nothing depends on it any more."""
        self._enough = True

    def joined(self, run: Run) -> Run:
        """What is known of the watched run by now, with the failure behind it. Waits for it."""
        failed = self._failure(self._second.result())
        if failed is None:
            return run
        return replace(run, ending=failed.ending, held_back=failed.held_back)

    def _failure(self, second: Run | None) -> Run | None:
        """Only of a run that came as far as the one that was watched: what stops it before may be
        the company of other children, and so may be the memory that it lacks.
        """
        if second is None or second.ending.kind != "exception":
            return None
        as_far = second.num_steps >= self._watched.num_steps
        return second if as_far and not ran_out_of_memory(second) else None
