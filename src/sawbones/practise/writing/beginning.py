"""An assignment in a folder of its own: the file to fill in, and when it was begun."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sawbones.practise.writing.assignments import Assignment, NoAssignment, assignment, assignments

MARK = ".assignment"


def begin(asked: Assignment, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / asked.file).write_text(asked.starter, encoding="utf-8")
    mark = {"assignment": asked.name, "begun": time.time()}
    (folder / MARK).write_text(json.dumps(mark), encoding="utf-8")
    return folder / asked.file


def begun(folder: Path) -> tuple[Assignment, float]:
    """The assignment of a folder, and the minutes since it was begun."""
    try:
        mark = json.loads((folder / MARK).read_text(encoding="utf-8"))
        return assignment(mark["assignment"]), (time.time() - float(mark["begun"])) / 60
    except (OSError, ValueError, KeyError) as error:
        raise NoAssignment(
            f"{folder} holds no assignment. Begin one: sawbones practise write. In another folder: "
            "--folder FOLDER"
        ) from error


def next_one(history: Iterable[dict[str, Any]]) -> Assignment:
    """What was failed or late the last time, then what was never written, then the longest ago."""
    last = {row["assignment"]: (number, row["passed"]) for number, row in enumerate(history)}

    def place(asked: Assignment) -> tuple[int, int]:
        number, passed = last.get(asked.name, (0, None))
        return ({False: 0, None: 1, True: 2}[passed], number)

    return min(assignments().values(), key=place)
