"""Strangers' files: no code of theirs runs unasked, nothing of theirs steers the terminal, and none
makes a command fail with a traceback, hang, or fill the memory.

All files are made here, from one real recording. In the ordinary test run all commands are called
in one process; with SAWBONES_HARM=1 each in a process of its own, with a limit on its memory.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.capture.conftest import environment
from tests.harm.hostile_bundles import BUNDLES, make_bundles, make_reports
from tests.harm.hostile_runs import CANARY, HOSTILE_RUNS

SECONDS = 60
PEAK_MB = 900  # torch and the checks alone take 350
SCRIPT = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(8):
    x = torch.randn(16, 4)
    y = 3 * (step == 5) + x[:, 0].gt(0).long()
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# Calls main() for every command line of a file and leaves what came of it in another.
DRIVER = """
import contextlib, io, json, resource, sys, time, traceback
from sawbones.cli.main import main

found = {}
for name, commands in json.load(open(sys.argv[1])).items():
    rows = []
    for command in commands:
        out, err, began, failed, status = io.StringIO(), io.StringIO(), time.monotonic(), "", None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(command)
            except SystemExit as end:
                status = end.code
            except BaseException:
                failed = traceback.format_exc()
        rows.append([command, status, out.getvalue(), err.getvalue(), failed, time.monotonic() - began,
                     resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10])
    found[name] = rows
json.dump(found, open(sys.argv[2], "w"))
"""


@dataclass(frozen=True)
class Outcome:
    command: list[str]
    status: int | None
    output: str
    errors: str
    traceback: str
    seconds: float
    peak_mb: int


def commands_for_run(folder: Path, out: Path) -> list[list[str]]:
    run = str(folder / "run")
    return [
        ["show", run],
        ["runs", str(folder)],
        ["query", run, "select * from steps"],
        ["query", "--format", "csv", run, "select * from events"],
        ["query", "--format", "json", run, "select * from tensors limit 10"],
        ["diagnose", "--json", f"{out}.json", "--html", f"{out}.html", run],
        ["diagnose", "--quiet", run],
        ["pin", "--out", str(out), run],
        ["scrub", run],
    ]


def commands_for_bundle(path: Path, out: Path) -> list[list[str]]:
    return [
        ["replay", str(path)],
        ["shrink", "--out", f"{out}-shrunk", str(path)],
        ["pin", "--out", str(out), str(path)],
        ["pin", "--out", str(out), "--only", "*", str(path)],
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real recording, a real bundle, a real report."""
    folder = tmp_path_factory.mktemp("strangers")
    (folder / "train.py").write_text(SCRIPT)
    for flags in (
        ["run", "--quiet", "--out", "real", "train.py"],
        ["diagnose", "--quiet", "--json", "real.json", "real"],
    ):
        subprocess.run(
            [sys.executable, "-m", "sawbones", *flags],
            cwd=folder,
            capture_output=True,
            timeout=200,
            env=environment(),
        )
    assert list((folder / "real" / "bundles").iterdir())
    assert json.loads((folder / "real.json").read_text())["findings"][0]["test"]
    return folder


@pytest.fixture(scope="module")
def command_lines(place: Path) -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for number, (name, spoil) in enumerate(HOSTILE_RUNS.items()):
        folder = place / f"run{number}"
        shutil.copytree(place / "real", folder / "run")
        spoil(folder / "run")
        found[name] = commands_for_run(folder, place / f"out-run{number}")
    (bundle,) = (place / "real" / "bundles").glob("*.sawbones")
    for number, (name, path) in enumerate(make_bundles(bundle, place).items()):
        found[name] = commands_for_bundle(path, place / f"out-bundle{number}")
    for number, (name, path) in enumerate(make_reports(place / "real.json", place).items()):
        found[name] = [
            ["pin", "--only", "*", "--out", str(place / f"out-report{number}"), str(path)]
        ]
    (place / "commands.json").write_text(json.dumps(found))
    return found


@pytest.fixture(scope="module")
def outcomes(place: Path, command_lines: dict[str, list[list[str]]]) -> dict[str, list[Outcome]]:
    given, made = place / "commands.json", place / "outcomes.json"
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(given), str(made)],
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    raw = json.loads(made.read_text())
    return {name: [Outcome(*row) for row in rows] for name, rows in raw.items()}


REPORTS = (
    *("a test of its own", "a test with a line more", "a test with an argument that runs"),
    *("another harness", "a docstring with code", "a fault that climbs"),
    *("words where lists belong", "a nested report", "an endless number in a report"),
)
MORE_BUNDLES = ("compressed parts", "a link as a part", "a pipe as a bundle", "a plain zip")
NAMES = (*HOSTILE_RUNS, *BUNDLES, *MORE_BUNDLES, *REPORTS)


def test_there_are_enough_of_them(command_lines: dict[str, list[list[str]]]) -> None:
    assert set(command_lines) == set(NAMES)
    assert len(NAMES) >= 60


@pytest.mark.parametrize("name", NAMES)
def test_a_strangers_file_does_no_harm(
    name: str, place: Path, outcomes: dict[str, list[Outcome]]
) -> None:
    for outcome in outcomes[name]:
        assert outcome.traceback == "", outcome.command
        assert "Traceback" not in outcome.output + outcome.errors
        assert outcome.status in (0, 1, 2, 3, 4), outcome
        assert outcome.seconds < SECONDS, outcome.command
        assert outcome.peak_mb < PEAK_MB, (outcome.command, outcome.peak_mb)
        steering = "\x1b\x07\x9b\u202e\u2066\r\x08"
        assert not set(steering) & set(outcome.output + outcome.errors), outcome.command
    assert not list(place.rglob(CANARY))


@pytest.mark.parametrize("name", [*BUNDLES, *MORE_BUNDLES])
def test_no_bundle_runs_without_trust(name: str, outcomes: dict[str, list[Outcome]]) -> None:
    assert [o.status for o in outcomes[name] if o.command[0] in ("replay", "shrink")] == [2, 2]


def test_what_would_run_is_shown_with_the_command_that_agrees(
    outcomes: dict[str, list[Outcome]],
) -> None:
    shown = outcomes["variables that load code"][0].errors
    assert "train.py (in the bundle)" in shown
    assert "sawbones replay --trust" in shown
    assert "LD_PRELOAD" not in shown  # it would not be set either


@pytest.mark.parametrize("name", REPORTS)
def test_no_strangers_test_is_written(
    name: str, place: Path, outcomes: dict[str, list[Outcome]]
) -> None:
    (outcome,) = outcomes[name]
    assert outcome.status == 2, outcome
    assert not list(Path(outcome.command[4]).glob("*.py"))


def test_tests_written_from_hostile_files_run_nothing_when_they_are_imported(
    place: Path, outcomes: dict[str, list[Outcome]]
) -> None:
    written = sorted(place.glob("out-*/test_*.py"))
    assert len(written) >= 6
    code = "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path)"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, written)], cwd=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not list(place.rglob(CANARY))


def test_pages_hold_no_markup_and_no_file_of_the_users(
    place: Path, outcomes: dict[str, list[Outcome]]
) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in place.glob("out-run*.html")}
    assert len(pages) >= 8
    for text in pages.values():
        assert "<script>fetch" not in text
        assert "<img src=x" not in text
        assert "private words" not in text
    for path in place.glob("out-run*.json"):
        assert "private words" not in path.read_text(encoding="utf-8")


def test_what_a_link_points_to_is_not_touched(
    place: Path, outcomes: dict[str, list[Outcome]]
) -> None:
    victims = list(place.rglob("victim.txt"))
    assert [path.read_text() for path in victims] == ["mine"]


REFUSED_SQL = [
    "ATTACH '{0}/new.db' AS other",
    "VACUUM INTO '{0}/copy.db'",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = 1",
    "CREATE TABLE t(x)",
    "DELETE FROM sites",
    "INSERT INTO meta VALUES('a', 'b')",
    "SELECT load_extension('evil')",
    "SELECT writefile('{0}/written', 'x')",
    (
        "WITH RECURSIVE c(n) AS (SELECT zeroblob(30000000) UNION ALL SELECT "
        "zeroblob(30000000) FROM c) SELECT * FROM c"
    ),
]


@pytest.mark.parametrize("sql", REFUSED_SQL, ids=lambda s: s[:24])
def test_a_query_only_reads(sql: str, place: Path) -> None:
    from sawbones.store.query import QueryFailed, query

    before = {p.name: p.stat().st_size for p in place.iterdir() if p.is_file()}
    with pytest.raises(QueryFailed):
        query(place / "real", sql.format(place))
    assert {p.name: p.stat().st_size for p in place.iterdir() if p.is_file()} == before


def test_an_endless_query_is_stopped(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sawbones.store import query as module

    endless = (
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    )
    monkeypatch.setattr(module, "MAX_SECONDS", 0.5)
    with pytest.raises(module.QueryFailed, match=r"stopped after 0\.5 s"):
        module.query(place / "real", endless)
    monkeypatch.setattr(module, "MAX_ROWS", 1000)
    with pytest.raises(module.QueryFailed, match="larger than 1,000 rows"):
        module.query(place / "real", endless.replace("count(*)", "n"))


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


@pytest.mark.skipif(
    not os.environ.get("SAWBONES_HARM"), reason="minutes: make harm (SAWBONES_HARM=1)"
)
@pytest.mark.parametrize("name", NAMES)
def test_each_command_in_a_process_of_its_own(
    name: str, place: Path, command_lines: dict[str, list[list[str]]]
) -> None:
    for command in command_lines[name]:
        done = subprocess.run(
            [sys.executable, "-m", "sawbones", *command],
            cwd=place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            preexec_fn=limited,
            env=environment(),
        )
        assert done.returncode in (0, 1, 2, 3, 4), done.stderr
        assert b"Traceback" not in done.stderr
        assert b"\x1b" not in done.stdout + done.stderr
    assert not list(place.rglob(CANARY))
