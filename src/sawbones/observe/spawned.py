"""Processes that a script starts itself to train in: `torch.multiprocessing.spawn`,
`Process(target=...)`.

Each writes a database of its own below the run folder while it runs. When the script ends, and it
took no step in its own process, those of the processes that did take steps become the ranks of the
run. Processes that only prepare data leave no trace.
"""

from __future__ import annotations

import importlib
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawbones.observe.options import Options
from sawbones.observe.watchdog import HANG
from sawbones.schema import Ending
from sawbones.store.opening import connect
from sawbones.store.ring import ring_path, stacks_path

if TYPE_CHECKING:
    from sawbones.observe.launch import Session

FOLDER = "spawned"


@dataclass(frozen=True)
class SpawnedRank:
    """Stands in for the function that a new process runs: watched there, as the script is watched
    here.
    """

    function: Callable[..., Any]
    number: int
    folder: str
    script: str
    argv: tuple[str, ...]
    options: str
    root: str
    prepare: tuple[str, str] | None  # a module with prepare_spawned(text, session), and the text

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from sawbones.observe import launch

        launch.forget_parent()
        session = launch.Session(
            Path(self.folder),
            self.script,
            self.argv,
            Options.from_json(self.options),
            self.root,
            self.number,
        )
        if self.prepare is not None:
            importlib.import_module(self.prepare[0]).prepare_spawned(self.prepare[1], session)
        session.arm()
        ending = Ending("finished", 0)
        try:
            return self.function(*args, **kwargs)
        except SystemExit as leaving:
            ending = launch.exited(leaving)
            raise
        except KeyboardInterrupt:
            ending = Ending("interrupted", 130)
            raise
        except BaseException as error:
            if launch.is_budget(error):
                ending = Ending("budget", 0, message=str(error))
                return None
            ending = launch.crashed(error, session)
            raise
        finally:
            session.close(ending)


def spawned_rank(session: Session, function: Callable[..., Any], number: int) -> SpawnedRank:
    folder, options = str(session.folder / FOLDER), session.options.to_json()
    argv, prepare = tuple(session.argv), session.prepare_spawned
    return SpawnedRank(
        function, number, folder, session.script, argv, options, session.root, prepare
    )


def adopt(folder: Path) -> None:
    """The processes that trained become the ranks of this run."""
    below = folder / FOLDER
    if not below.is_dir() or _num_steps(folder, 0):
        return
    numbers = [
        int(p.stem.removeprefix("run-rank")) if p.stem != "run" else 0
        for p in below.glob("run*.db")
    ]
    trained = [n for n in sorted(numbers) if n in _hung(below) or _num_steps(below, n)]
    for rank, number in enumerate(trained):
        for suffix in ("", "-wal", "-shm"):
            _move(below / (_name(number) + suffix), folder / (_name(rank) + suffix))
        for path in (ring_path, stacks_path):
            _move(path(below, number), path(folder, rank))
        with suppress(sqlite3.Error), sqlite3.connect(folder / _name(rank), timeout=5) as db:
            rows: Sequence[tuple[str, str]] = [
                ("rank", str(rank)),
                ("world_size", str(len(trained))),
            ]
            db.executemany("insert or replace into meta (key, value) values (?, ?)", rows)


def _name(rank: int) -> str:
    return f"run-rank{rank}.db" if rank else "run.db"


def _move(source: Path, target: Path) -> None:
    with suppress(FileNotFoundError):
        target.unlink()
    with suppress(FileNotFoundError):
        os.replace(source, target)


def _hung(folder: Path) -> set[int]:
    """Those that were ended since they waited for each other, before their first step perhaps."""
    try:
        return {
            int(position["rank"])
            for position in json.loads((folder / HANG).read_text(encoding="utf-8"))["ranks"]
        }
    except (OSError, ValueError):
        return set()


def _num_steps(folder: Path, rank: int) -> int:
    try:
        with connect(folder, rank) as db:
            return int(db.execute("select count(*) from steps").fetchone()[0])
    except Exception:
        return 0
