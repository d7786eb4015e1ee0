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
from sawbones.schema.populations import Population, Populations
from sawbones.schema.profile import Profile, StepParts
from sawbones.schema.sources import Moved, Place, SourceChange, Sources
from sawbones.store import RunWriter, read_run
from sawbones.store.codec import decode_fields, to_plain
from sawbones.store.errors import RunNotReadable

# what the recorder keeps until the end of the run
WRITTEN = re.compile(r"""(?:recorder|self|_r|\.r)\.facts(?:\.setdefault\(|\[)"(\w+)\"""")
BY_THE_READER = {"graded_evaluations"}  # goes into the phases of events and batches


def test_every_signal_has_a_type() -> None:
    assert not hasattr(Run, "facts") and "facts" not in {f.name for f in fields(Run)}
    sources = Path(sawbones.__file__).parent.rglob("*.py")
    written = {name for path in sources for name in WRITTEN.findall(path.read_text("utf-8"))}
    assert len(written) > 20
    assert written - BY_THE_READER <= {f.name for f in fields(Observed)}


@pytest.mark.parametrize(
    "value",
    [
        {"scalers": (Scaler(Site("train.py", 3), 65536.0, 2.0, 0.5, 2000),)},
        {"graphs": Graphs(((10, 9, 10),), ((Site("train.py", 4), 2),), kept=9, made=10)},
        {"twin_run": TwinRun(12, ("torch",))},
        {"loose_gradients": ()},
        {"sources": Sources(place=Place("a.py", "f", 3, 4, ("x",)), row_of={-7: 1})},
        {"source_change": SourceChange(features=Moved("moved", site=Site("a.py", 3)))},
        {"populations": Populations((Population(60, score=0.5, hashes=(-3, 4)),))},
        {"profile": Profile((StepParts(1.0, 2.0, 3.0, 4.0, 5.0),))},
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
