"""One thread reads the runs; each client is told what it has not seen yet.

Steps are read twice a second and go out by cursor: a client names the rows it has, and gets those
behind them. What needs all of a run (findings, layers) is read less often: at most a fifth of one
core goes there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sawbones.page.following import CURVES, POINTS, Followed
from sawbones.page.view import view
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError
from sawbones.trials.good_run import differences

POLL_SECONDS = 0.5
LOOK_SECONDS = 2.0  # between two readings of a whole run, at least
LOOK_SHARE = 0.2  # of the time, at most, for reading whole runs
INCREMENT_POINTS = 200
MOST_RUNS = 20


class Hub:
    def __init__(self, folders: Sequence[Path]) -> None:
        self.runs = [Followed(folder) for folder in folders]
        self.views: list[dict[str, Any]] = [{} for _ in folders]
        self.compared: list[dict[str, Any]] = []
        self.version = 0  # of the views
        self._versions: list[dict[str, int]] = [{} for _ in folders]  # of each part of a view
        self.clients = 0
        self._recorded: list[Run | None] = [None for _ in folders]
        self._looked_at: list[tuple[int, bool]] = [(-1, False) for _ in folders]
        self._next_look = 0.0
        self._news = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._follow, name="page-steps", daemon=True),
            threading.Thread(target=self._look, name="page-view", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        with self._news:
            self._closed = True
            self._news.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._closed

    # reading

    def _follow(self) -> None:
        while not self._closed:
            more = False
            for run in self.runs:
                before = (run.rows, run.has_ended)
                if run.has_ended:
                    continue
                try:
                    more |= run.poll()
                except SawbonesError:  # not begun yet
                    continue
                if (run.rows, run.has_ended) != before:
                    with self._news:
                        self._news.notify_all()
            if not more:
                time.sleep(POLL_SECONDS)

    def _look(self) -> None:
        while not self._closed:
            began, cpu = time.monotonic(), time.thread_time()
            changed = [self._looked(number) for number in range(len(self.runs))]
            if any(changed):
                self.compared = self._compare()
                with self._news:
                    self.version += 1
                    self._news.notify_all()
            spent = max(time.thread_time() - cpu, time.monotonic() - began)
            time.sleep(max(LOOK_SECONDS, spent / LOOK_SHARE) if any(changed) else POLL_SECONDS)

    def _looked(self, number: int) -> bool:
        run = self.runs[number]
        state = (run.rows, run.has_ended)
        if state == self._looked_at[number]:
            return False
        before = self.views[number]
        try:
            found, self._recorded[number] = view(str(run.folder))
            self.views[number] = {**found, "trouble": ""}  # what was told before is over
        except SawbonesError as error:
            self.views[number] = {**before, "trouble": str(error)}
        for part, value in self.views[number].items():
            if part not in before or before[part] != value:
                self._versions[number][part] = self.version + 1
        self._looked_at[number] = state
        return True

    def _compare(self) -> list[dict[str, Any]]:
        """Each run against the first."""
        first, *others = self._recorded
        found = []
        for number, other in enumerate(others, start=1):
            if first is None or other is None:
                continue
            rows = differences(first, other)
            part = next((d.step for d in rows if d.what == "loss" and d.step is not None), None)
            found.append({"run": number, "parts_at": part, "rows": [d.text for d in rows]})
        return found

    # what clients are told

    def wait(self, seconds: float) -> None:
        with self._news:
            if not self._closed:
                self._news.wait(seconds)

    def start_message(self) -> dict[str, Any]:
        return {
            "curves": CURVES,
            "runs": [{"name": run.folder.name, "folder": str(run.folder)} for run in self.runs],
        }

    def steps_since(self, cursors: list[int]) -> dict[str, Any] | None:
        """New points of every run, and where the client then stands; None when nothing is new."""
        news = []
        for number, run in enumerate(self.runs):
            begin, end = cursors[number], run.rows
            if begin == end:
                continue
            most = POINTS if begin == 0 else INCREMENT_POINTS
            news.append(
                {
                    "run": number,
                    "from": begin,
                    "step": run.last_step,
                    "ended": run.has_ended,
                    "points": run.points(begin, end, most),
                }
            )
            cursors[number] = end
        return {"cursor": list(cursors), "runs": news} if news else None

    def state(self, since: int = 0) -> dict[str, Any]:
        """Of every view the parts that are newer than version `since`."""
        news = [
            {part: value for part, value in one.items() if versions.get(part, 0) > since}
            for one, versions in zip(self.views, self._versions, strict=True)
        ]
        return {
            "views": news,
            "compared": self.compared,
            "ended": [run.has_ended for run in self.runs],
        }

    def zoomed(self, first: float, last: float) -> list[dict[str, Any]]:
        return [run.points(*run.rows_between(first, last)) for run in self.runs]
