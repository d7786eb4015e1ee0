"""SQL over a recorded run, also while it is going, and the commands that list and summarise
runs.
"""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import sawbones
from sawbones.observe.options import Options
from sawbones.store import read_run
from sawbones.store.query import QueryFailed, query


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six steps, NaN from the fourth on; the second half of the parameters is frozen."""
    where = tmp_path_factory.mktemp("runs") / "run"
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))
    model[1].requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with sawbones.watch(model, optimizer, out=where, options=Options(deep_steps=(), deep_every=0)):
        for step in range(6):
            optimizer.zero_grad()
            (model(torch.ones(2, 4)).mean() * (math.nan if step == 3 else 1.0)).backward()
            optimizer.step()
    return where


def command(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sawbones", *args], capture_output=True, text=True, timeout=60
    )


def test_steps_hold_nan_as_a_text(folder: Path) -> None:
    names, rows = query(folder, "select step, loss, lr from steps order by step")
    assert names == ["step", "loss", "lr"] and len(rows) == 6
    assert [r[1] for r in rows[3:]] == ["nan"] * 3 and all(
        isinstance(r[1], float) for r in rows[:3]
    )
    assert query(folder, "select count(*) from steps where loss = 'nan'")[1] == [(3,)]


def test_events_have_the_users_lines(folder: Path) -> None:
    _, rows = query(
        folder,
        "select kind, file, line, function, code from events where kind = 'step' and step = 2",
    )
    ((kind, file, line, function, code),) = rows
    assert (
        kind == "step"
        and file.endswith("test_query.py")
        and line > 0
        and function == "folder"
        and code == "optimizer.step()"
    )
    _, rows = query(
        folder,
        (
            "select json_extract(data, '$.value') from events where kind = 'backward' and "
            "step in (2, 3)"
        ),
    )
    assert isinstance(rows[0][0], float) and rows[1][0] == "nan"


def test_tensors_are_unpacked_by_name(folder: Path) -> None:
    _, rows = query(
        folder,
        "select step, name, grad_l2, grad_nonfinite, param_l2 from tensors where step in (2, 3)",
    )
    table = {(r[0], r[1]): r[2:] for r in rows}
    assert set(table) == {
        (s, n) for s in (2, 3) for n in ("0.weight", "0.bias", "1.weight", "1.bias")
    }
    assert (
        table[2, "0.weight"][0] > 0
        and table[3, "0.weight"][0] == "nan"
        and table[3, "0.weight"][1] == 12
    )
    assert table[2, "1.weight"][0] is None  # no gradient


def test_batches_count_their_samples(folder: Path) -> None:
    _, rows = query(folder, "select step, phase, source, num_samples from batches")
    assert rows == [(i, "train", "model", 2) for i in range(6)]


def test_a_query_that_fails_names_the_views(folder: Path) -> None:
    with pytest.raises(
        QueryFailed, match=r"no such column: losss.*Views: steps, events, tensors, batches"
    ):
        query(folder, "select losss from steps")
    with pytest.raises(QueryFailed):
        query(folder, "delete from steps")
    assert len(query(folder, "select * from steps")[1]) == 6


def test_the_command_gives_tables_csv_and_json(folder: Path) -> None:
    sql = "select step, loss from steps limit 2"
    table, csv_text, json_text = (
        command("query", *f, str(folder), sql) for f in ((), ("--format=csv",), ("--format=json",))
    )
    assert table.returncode == csv_text.returncode == json_text.returncode == 0
    assert "step" in table.stdout and "loss" in table.stdout
    assert [row["step"] for row in csv.DictReader(io.StringIO(csv_text.stdout))] == ["0.0", "1.0"]
    assert [row["step"] for row in json.loads(json_text.stdout)] == [0.0, 1.0]


def test_a_folder_without_a_run_says_what_to_do(folder: Path) -> None:
    done = command("query", str(folder.parent), "select 1")
    assert (
        done.returncode == 2 and "no recorded run" in done.stderr and "sawbones run" in done.stderr
    )


def test_runs_and_show_summarise(folder: Path) -> None:
    listed, shown = command("runs", str(folder.parent)), command("show", str(folder))
    assert listed.returncode == shown.returncode == 0
    assert "6 steps" in listed.stdout
    assert (
        "NOT FINITE at 3 steps, first at step 3" in shown.stdout
        and "15 trainable values in 2 tensors" in shown.stdout
    )


def test_a_run_can_be_read_while_it_is_going(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watching = sawbones.watch(
        model, optimizer, out=tmp_path / "run", options=Options(deep_steps=(), deep_every=0)
    )
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    watching.flush()
    going = read_run(tmp_path / "run")
    assert going.num_steps >= 2 and going.ending.kind == "killed"
    assert query(tmp_path / "run", "select count(*) from events where kind = 'step'")[1] == [(3,)]
    assert watching.close().ending.kind == "finished"
