"""What is kept of exercises: in the user's state folder, never in the folder of the exercise.

`exercises/<id>.json` says which exercise a folder holds, when it was begun and which hints were
taken; `history.jsonl` has one line per graded answer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sawbones.fixing.source import Source
from sawbones.practise.exercises import SCRIPT, Exercise, make
from sawbones.schema.errors import SawbonesError

MARK = ".exercise"
ANSWERS = "history.jsonl"
DRILLS = "drills.jsonl"
WRITTEN = "written.jsonl"


class NotAnExercise(SawbonesError):
    """A folder that `sawbones practise` has not made, or of which nothing is known here."""


@dataclass(frozen=True)
class Record:
    id: str
    seed: int
    level: int
    layer: str | None
    minutes: float
    begun: float
    hints: int = 0
    script: str = SCRIPT
    # Of an exercise in a script of the user's: the script as it was, and what was put into it.
    healthy: str = ""
    faults: tuple[str, ...] = ()

    @property
    def minutes_taken(self) -> float:
        return (time.time() - self.begun) / 60

    def exercise(self, folder: Path) -> Exercise:
        if not self.healthy:
            return make(self.seed, self.level, self.layer)
        broken = _state() / "exercises" / f"{self.id}.py"
        return Exercise(
            self.seed,
            self.level,
            self.faults,
            Source.of(self.healthy.encode(), self.script),
            Source.of(broken.read_bytes(), self.script),
        )


def _state() -> Path:
    stated = os.environ.get("XDG_STATE_HOME", "")
    folder = Path(stated) if os.path.isabs(stated) else Path.home() / ".local" / "state"
    return folder / "sawbones" / "practise"


def keep(record: Record, broken: str = "") -> None:
    folder = _state() / "exercises"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{record.id}.json").write_text(json.dumps(asdict(record)), encoding="utf-8")
    if broken:
        (folder / f"{record.id}.py").write_text(broken, encoding="utf-8")


def of_folder(folder: Path) -> Record:
    try:
        name = (folder / MARK).read_text(encoding="utf-8").strip()
        raw = json.loads((_state() / "exercises" / f"{Path(name).name}.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise NotAnExercise(
            f"{folder} holds no exercise of yours. Begin one: sawbones practise. In another folder: "
            "--folder FOLDER"
        ) from error
    return Record(**{**raw, "faults": tuple(raw["faults"])})


def take_hint(record: Record) -> Record:
    taken = replace(record, hints=record.hints + 1)
    keep(taken)
    return taken


def remember(row: dict[str, Any], file: str = ANSWERS) -> None:
    _state().mkdir(parents=True, exist_ok=True)
    with (_state() / file).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")


def history(file: str = ANSWERS) -> Iterator[dict[str, Any]]:
    try:
        text = (_state() / file).read_text(encoding="utf-8")
    except OSError:
        return
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue  # a line that was cut
