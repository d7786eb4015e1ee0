"""Trials: at the captured step the process forks, and each fork finishes the step with a changed
batch.

The script is rebuilt once; a trial then costs one step. The parent of the forks never leaves the
place where the batch arrived.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sawbones.capture import edits as changes
from sawbones.capture.minimise import shortest_window, smallest
from sawbones.observe.endings import Finished
from sawbones.observe.fingerprints import tensors_in

if TYPE_CHECKING:
    from sawbones.capture.stage import Stage

TRIAL_SECONDS = 30.0


class InTrial(Exception):
    """Raised in a fork, to leave the search and go on with the step."""

    def __init__(self, value: Any) -> None:
        super().__init__("in a trial")
        self.value = value


def shrink_here(stage: Stage, value: Any) -> Any:
    """Returns in forks only, with the batch of the trial; the parent ends the script when the
    search is over.
    """
    torch.set_num_threads(1)  # threads of a pool do not survive a fork
    search = Search(stage, value)
    try:
        search.run()
    except InTrial as trial:
        return trial.value
    raise Finished


class Search:
    def __init__(self, stage: Stage, value: Any) -> None:
        assert stage.shrink is not None
        self.stage = stage
        self.value = value
        self.folder = Path(stage.shrink["folder"])
        self.ends = time.monotonic() + float(stage.shrink["seconds"])
        self.edits: list[dict[str, Any]] = []
        self.outcome: dict[str, Any] = {}
        self.num_trials = 0
        self._seen: dict[str, bool] = {}

    def run(self) -> None:
        self.outcome = self.trial([])
        wanted = self.stage.bundle.failure.kind
        if not self.same(self.outcome):
            self._write(
                {
                    "failed": (
                        "the step did not fail again before anything was changed "
                        f"({self.outcome.get('kind')}, wanted {wanted})"
                    )
                }
            )
            return
        before = {
            "examples": changes.num_examples(self.value),
            "numbers": self._numbers(self.value),
        }
        self.say(f"{before['examples']} examples, {before['numbers']} numbers")
        self._rows()
        self._lengths()
        self._values()
        alone = self._alone()
        final = changes.apply(self.value, self.edits)
        outcome = self.trial(self.edits, traced=True, alone=alone)
        if not self.same(outcome):
            outcome = self.trial(self.edits, alone=alone)
        after = {"examples": changes.num_examples(final), "numbers": self._numbers(final)}
        self._derive(final, outcome, alone)
        self._write(
            {
                "before": before,
                "after": after,
                "edits": self.edits,
                "outcome": outcome,
                "trials": self.num_trials,
                "alone": alone,
            }
        )

    # the phases

    def _rows(self) -> None:
        size = changes.num_examples(self.value)
        if size < 2:
            return

        def holds(keep: list[int]) -> bool:
            return self.holds([{"edit": "rows", "of": size, "keep": keep}])

        kept = smallest(range(size), holds)
        if len(kept) < size:
            self.edits.append({"edit": "rows", "of": size, "keep": kept})
        self.say(f"examples: {size} -> {len(kept)} (number {', '.join(map(str, kept[:8]))})")

    def _lengths(self) -> None:
        for size in changes.sequence_lengths(changes.apply(self.value, self.edits)):

            def holds(start: int, length: int, size: int = size) -> bool:
                return self.holds(
                    [*self.edits, {"edit": "window", "of": size, "start": start, "length": length}]
                )

            start, length = shortest_window(size, holds)
            if length < size:
                self.edits.append({"edit": "window", "of": size, "start": start, "length": length})
                self.say(f"length: {size} -> {length}")

    def _values(self) -> None:
        for paths in changes.groups(changes.apply(self.value, self.edits)):
            current = changes.apply(self.value, self.edits)
            tensor = next((t for path, t in tensors_in(current) if path == paths[0]), None)
            if tensor is None or not tensor.numel() or not bool((tensor != 0).any()):
                continue
            if self.holds([*self.edits, {"edit": "fill", "paths": paths, "with": 0}]):
                self.edits.append({"edit": "fill", "paths": paths, "with": 0})
                self.say(f"values: {paths[0]} is all zero now")
                continue
            nonzero = torch.nonzero(tensor.detach().reshape(-1) != 0).reshape(-1).tolist()
            if tensor.numel() > changes.MAX_ELEMENTS or len(nonzero) < 2:
                continue

            def holds(elements: list[int], paths: list[str] = paths) -> bool:
                return self.holds(
                    [*self.edits, {"edit": "keep", "paths": paths, "elements": elements}]
                )

            kept = smallest(nonzero, holds)
            if len(kept) < len(nonzero):
                self.edits.append({"edit": "keep", "paths": paths, "elements": kept})
                self.say(f"values: {len(nonzero)} -> {len(kept)} of {paths[0]} are not zero")

    def _alone(self) -> bool:
        """Without gradients from before: of microsteps of the same step, or carried over from other
        steps.
        """
        carried = (
            self.stage.way == "jump"
            and (self.stage.bundle.unpacked("snapshot") or {}).get("gradients") is not None
        )
        if not carried and not any(
            a["step"] == self.stage.bundle.step for a in self.stage.arrivals[:-1]
        ):
            return True
        found = self.same(self.trial(self.edits, alone=True))
        self.say("earlier gradients: " + ("not needed" if found else "needed"))
        return found

    # one trial

    def holds(self, edits: list[dict[str, Any]]) -> bool:
        key = json.dumps(edits)
        if key not in self._seen:
            if time.monotonic() > self.ends:
                return False
            self._seen[key] = self.same(self.trial(edits))
        return self._seen[key]

    def same(self, outcome: dict[str, Any]) -> bool:
        failure = self.stage.bundle.failure
        if outcome.get("kind") != failure.kind:
            return failure.kind == "by hand" and outcome.get("kind") not in ("exception", None)
        if failure.kind != "exception":
            return True
        site = outcome.get("site") or {}
        line = failure.site is None or site.get("line") == failure.site.line
        return (
            outcome.get("exception") == failure.exception
            and line
            and shape_of(outcome.get("message")) == shape_of(failure.message)
        )

    def trial(
        self, edits: list[dict[str, Any]], traced: bool = False, alone: bool = False
    ) -> dict[str, Any]:
        self.num_trials += 1
        receive, send = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            os.close(receive)
            raise InTrial(self._in_the_fork(send, edits, traced, alone))
        os.close(send)
        try:
            return _outcome(receive, TRIAL_SECONDS)
        finally:
            os.close(receive)
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.waitpid(child, 0)

    def _in_the_fork(
        self, send: int, edits: list[dict[str, Any]], traced: bool, alone: bool
    ) -> Any:
        stage = self.stage
        stage.trial = send
        stage.r.live_on_here()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        stage.alone = alone
        if alone:
            for parameter in stage.parameters():
                parameter.grad = None
        value = changes.apply(self.value, edits)
        if traced:
            stage.trace_from_here(self.folder)
        return value

    # what is left behind

    def _derive(self, final: Any, outcome: dict[str, Any], alone: bool) -> None:
        from sawbones.capture.writing import derive_bundle

        derive_bundle(self.stage, self.folder / "shrunk.sawbones", final, outcome, alone)

    def _numbers(self, value: Any) -> int:
        """Each tensor once, however many names it has."""
        first = {paths[0] for paths in changes.groups(self.value)}
        return sum(t.numel() for path, t in tensors_in(value) if path in first)

    def say(self, text: str) -> None:
        with (self.folder / "progress.txt").open("a", encoding="utf-8") as progress:
            progress.write(f"{text}  [{self.num_trials} trials]\n")

    def _write(self, found: dict[str, Any]) -> None:
        (self.folder / "shrunk.json").write_text(json.dumps(found), encoding="utf-8")


def shape_of(message: str | None) -> str:
    """A message without its numbers: a smaller batch has smaller ones."""
    return re.sub(r"\d+", "#", (message or "").splitlines()[0] if message else "")


def _outcome(receive: int, seconds: float) -> dict[str, Any]:
    pieces: list[bytes] = []
    ends = time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([receive], [], [], max(0.0, ends - time.monotonic()))
        if not ready:
            return {"kind": "too long"}
        piece = os.read(receive, 1 << 16)
        if not piece:
            break
        pieces.append(piece)
    try:
        found: dict[str, Any] = json.loads(b"".join(pieces))
    except ValueError:
        return {"kind": "died"}
    return found
