"""Signals that a run records once are typed fields of Observed."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import fields
from pathlib import Path

import pytest

import sawbones
from sawbones.schema import Ending, Run, Site
from sawbones.schema.observed import Observed
from sawbones.schema.one_off import Graphs, Scaler, TwinRun
from sawbones.store import RunWriter, read_run
from sawbones.store.codec import decode_fields, to_plain
from sawbones.store.errors import RunNotReadable

NOT_TYPED = 1  # names that are still read from run.facts, untyped; the number may only fall
READ = re.compile(r"""(?<!recorder)(?<!self)(?<!_r)(?<!\.r)\.facts(?:\.get\(|\[)"(\w+)\"""")
SOURCES = [
    path
    for path in Path(sawbones.__file__).parent.rglob("*.py")
    if "observe" not in path.parts and "remedies" not in path.parts
]


def test_the_number_of_signals_without_a_type_only_falls() -> None:
    read = {name for path in SOURCES for name in READ.findall(path.read_text(encoding="utf-8"))}
    assert not read & {f.name for f in fields(Observed)}, "these have a field of their own"
    assert len(read) == NOT_TYPED, sorted(read)


@pytest.mark.parametrize(
    "value",
    [
        {"scalers": (Scaler(Site("train.py", 3), 65536.0, 2.0, 0.5, 2000),)},
        {"graphs": Graphs(((10, 9, 10),), ((Site("train.py", 4), 2),), kept=9, made=10)},
        {"twin_run": TwinRun(12, ("torch",))},
        {"loose_gradients": ()},
    ],
)
def test_what_was_recorded_comes_back_as_its_own_type(value: dict[str, object]) -> None:
    assert decode_fields(Observed, to_plain(value)) == value
    run = Run("train.py", (), "", {}, Ending("finished"), **decode_fields(Observed, value))
    assert {name: getattr(run, name) for name in value} == value


def test_a_recording_of_before_is_refused_in_one_line(tmp_path: Path) -> None:
    RunWriter(tmp_path / "run").close()
    with sqlite3.connect(tmp_path / "run" / "run.db") as db:
        db.execute("update meta set value = '1' where key = 'schema_version'")
    db.close()
    with pytest.raises(RunNotReadable, match=r"recorded with schema 1; .* Record it again") as told:
        read_run(tmp_path / "run")
    assert "\n" not in str(told.value)
