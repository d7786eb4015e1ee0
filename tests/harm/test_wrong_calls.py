"""Calls that are wrong: exit status 2, one line that holds the wrong value, and no traceback."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sawbones.cli.main import main
from sawbones.store import RunWriter

TRAIN = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(4, 2)).square().mean().backward()
    optimizer.step()
"""
SUBJECT = """
import torch
def model(): return torch.nn.Linear(2, 1)
def data(): return [torch.ones(4, 2)] * 4
def loss(outputs, batch): return outputs.square().mean()
def optimizer(parameters): return torch.optim.SGD(parameters, 0.1)
number = 5
half = {"model": model}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that could be named by mistake."""
    folder = tmp_path_factory.mktemp("wrong")
    for name, text in {
        "train.py": TRAIN,
        "pieces.py": SUBJECT,
        "broken_pieces.py": "def model(:\n",
        "leaving.py": "raise SystemExit(0)\n",
        "empty": "",
        "notes.txt": "no data\n",
        "broken.json": '{"schema": 2,',
        "list.json": "[1, 2]",
        "old.json": '{"schema": 1}',
        "half.json": json.dumps({"schema": 2, "verdict": "sick", "findings": 7}),
        "rows.csv": "a,b\n1,2\n3,4\n",
        "empty.csv": "",
        "empty.sawbones": "",
    }.items():
        (folder / name).write_text(text)
    (folder / "binary.py").write_bytes(bytes(range(256)))
    (folder / "binary.json").write_bytes(b"\xff\xfe\x00\x80" * 50)
    (folder / "binary.sawbones").write_bytes(bytes(range(256)) * 20)
    (folder / "a-folder.sawbones").mkdir()
    for name in ("zero", "text", "directory", "newer", "other", "recorded"):
        (folder / "runs" / name).mkdir(parents=True)
    (folder / "runs/zero/run.db").touch()
    (folder / "runs/text/run.db").write_text("this is no database\n" * 100)
    (folder / "runs/directory/run.db").mkdir()
    for name in ("newer", "recorded"):
        RunWriter(folder / "runs" / name).close()
    for name, sql in (
        ("newer", "update meta set value = '999' where key = 'schema_version'"),
        ("other", "create table meta (x)"),
    ):
        with sqlite3.connect(folder / "runs" / name / "run.db") as db:
            db.execute(sql)
        db.close()
    return folder


NUMBERS = {
    "diagnose --seconds": ("nan", "inf", "-inf", "-1", "0", "1e999", "ten", "", "0x10"),
    "diagnose --steps": ("0", "-3", "1.5", "many", "nan"),
    "diagnose --nproc-per-node": ("0", "-2", "100000", "two", "1.0"),
    "diagnose --capture-limit": ("nan", "-5", "0", "inf", "big"),
    "run --nproc-per-node": ("0", "-2", "999999999", "x"),
    "run --capture-limit": ("nan", "-1", "inf", "0"),
    "run --stop-on": ("nan", "likely,loop.nothing"),
    "profile --steps": ("3", "-1", "0", "nan", "lots"),
    "profile --seconds": ("nan", "0", "inf", "-1"),
    "profile --top": ("0", "-1", "1.5"),
    "try --seconds": ("nan", "0", "inf", "-1"),
    "try --steps": ("3", "-1", "nan", "1.5"),
    "try --nproc-per-node": ("0", "-2", "100000", "x"),
}
FLAGS_OF_SCRIPTS = [
    pytest.param(
        [*flag.split(), value, *(["lr=0.1"] if flag.startswith("try") else []), "train.py"],
        repr(value),
        id=f"{flag} {value}",
    )
    for flag, values in NUMBERS.items()
    for value in values
]

# The call, and what its one line has to contain.
CALLS = {
    "nix": "'nix'",
    "--nix": "'--nix'",
    "Diagnose train.py": "'Diagnose'",
    "diagnose": "SCRIPT",
    "diagnose --nix train.py": "--nix",
    "diagnose --secs 5 train.py": "--secs",
    "diagnose --seconds": "--seconds",
    "diagnose nowhere.py": "nowhere.py",
    "diagnose ''": "''",
    "diagnose runs": "runs",
    "diagnose binary.py": "binary.py",
    "diagnose -m no.such.module": "no.such.module",
    "diagnose --only model.causal-leek train.py": "model.causal-leek",
    "diagnose --only '' train.py": "''",
    "diagnose --json runs train.py": "'runs'",
    "diagnose --json '' train.py": "''",
    "diagnose --json no/such/folder/r.json train.py": "no/such/folder",
    "diagnose --json train.py/r.json train.py": "train.py/r.json",
    "diagnose --html runs/ train.py": "'runs/'",
    "diagnose --json r --html r train.py": "both name r",
    "diagnose --keep-run train.py train.py": "'train.py'",
    "diagnose --keep-run train.py/deep/er train.py": "train.py/deep/er",
    "diagnose --keep-run runs/recorded train.py": "runs/recorded",
    "diagnose --pin notes.txt train.py": "'notes.txt'",
    "diagnose --pin '' train.py": "''",
    "diagnose runs/zero": "runs/zero",
    "diagnose runs/text": "runs/text",
    "diagnose runs/directory": "runs/directory",
    "diagnose runs/newer": "999",
    "diagnose runs/other": "runs/other",
    "run": "SCRIPT",
    "run nowhere.py": "nowhere.py",
    "run ''": "''",
    "run --out train.py train.py": "'train.py'",
    "run --out runs/recorded train.py": "runs/recorded",
    "run --out '' train.py": "''",
    "run -m no_such_module": "no_such_module",
    "profile": "SCRIPT",
    "profile nowhere.py": "nowhere.py",
    "profile binary.py": "binary.py",
    "profile --json runs train.py": "'runs'",
    "run -m ''": "''",
    "run -m .": "'.'",
    "diagnose -m ''": "''",
    "try": "name a trial",
    "try train.py": "name a trial",
    "try --lr nan train.py": "--lr",
    "try nix train.py": "nix",
    "try lr=nix train.py": "nix",
    "try lr=nan train.py": "nan",
    "try lr=0.1 nowhere.py": "nowhere.py",
    "try lr=0.1 binary.py": "binary.py",
    "try --json runs lr=0.1 train.py": "'runs'",
    "scrub": "RUN",
    "scrub --nix runs/recorded": "--nix",
    "scrub --value ab runs/recorded": "--value",
    "scrub nowhere": "nowhere",
    "scrub runs/zero": "runs/zero",
    "scrub runs/directory": "runs/directory",
    "show": "RUN",
    "show one two": "two",
    "show nowhere": "nowhere",
    "show ''": "run.db",
    "show train.py": "train.py",
    "show runs/zero": "runs/zero",
    "show runs/text": "runs/text",
    "show runs/directory": "runs/directory",
    "show runs/newer": "999",
    "show runs/other": "runs/other",
    "runs nowhere": "'nowhere'",
    "runs train.py": "'train.py'",
    "query runs/recorded": "SQL",
    "query nowhere 'select 1'": "nowhere",
    "query runs/zero 'select 1'": "runs/zero",
    "query runs/recorded ''": "''",
    "query runs/recorded '-- nothing'": "'-- nothing'",
    "query runs/recorded 'select'": "select",
    "query runs/recorded 'select nix from steps'": "nix",
    "query runs/recorded 'select 1; select 2'": "select 2",
    "query runs/recorded 'selekt 1'": "selekt",
    "query --format xml runs/recorded 'select 1'": "'xml'",
    "explain": "WORDS",
    "explain model.causal-leek": "model.causal-leek",
    "explain ''": "''",
    "faults nix.*": "nix.*",
    "faults a b": "b",
    "pin": "TARGET",
    "pin nowhere": "nowhere",
    "pin train.py": "train.py",
    "pin broken.json": "broken.json",
    "pin binary.json": "binary.json",
    "pin list.json": "list.json",
    "pin old.json": "1",
    "pin half.json": "half.json",
    "pin empty": "empty",
    "pin runs/zero": "runs/zero",
    "pin --out train.py runs/recorded": "'train.py'",
    "pin --only nix.nix runs/recorded": "nix.nix",
    "pin empty.sawbones": "empty.sawbones",
    "check": "SUBJECT",
    "check ''": "''",
    "check :": "':'",
    "check :subject": "':subject'",
    "check ..": "'..'",
    "check a..b:c": "'a..b:c'",
    "check no.module:subject": "no.module",
    "check nowhere.py:subject": "nowhere.py",
    "check pieces:nothing": "'nothing'",
    "check pieces:number": "number",
    "check pieces:half": "half",
    "check broken_pieces.py:model": "broken_pieces.py",
    "check leaving.py:model": "leaving.py",
    "check binary.py:model": "binary.py",
    "check --steps 0 pieces": "'0'",
    "check --steps nan pieces": "'nan'",
    "check --seed -1 pieces": "'-1'",
    "check --seed 99999999999999999999 pieces": "'99999999999999999999'",
    "check --layer brain pieces": "'brain'",
    "check --only nix pieces": "nix",
    "check --json runs pieces": "'runs'",
    "check --junit no/where.xml pieces": "no/where.xml",
    "check --sarif '' pieces": "''",
    "replay": "BUNDLE",
    "replay nowhere.sawbones": "nowhere.sawbones",
    "replay train.py": "train.py",
    "replay empty.sawbones": "empty.sawbones",
    "replay binary.sawbones": "binary.sawbones",
    "replay a-folder.sawbones": "a-folder.sawbones",
    "replay --seconds nan nowhere.sawbones": "'nan'",
    "replay --device tpu nowhere.sawbones": "'tpu'",
    "shrink empty.sawbones": "empty.sawbones",
    "shrink --seconds -1 empty.sawbones": "'-1'",
    "shrink --out train.py empty.sawbones": "'train.py'",
    "lab": "ACTION",
    "lab nix": "'nix'",
    "lab list nix.*": "nix.*",
    "lab run": "FAULT",
    "lab run nix.nix": "'nix.nix'",
    "lab run --seed 1.5 loop.no-zero-grad": "'1.5'",
    "lab run --seed -1 loop.no-zero-grad": "'-1'",
    "lab run --out train.py loop.no-zero-grad": "'train.py'",
    "lab bench --jobs 0": "'0'",
    "lab bench --jobs 100000": "'100000'",
    "lab bench --only nix": "'nix'",
    "lab bench --out runs --only loop.no-zero-grad": "'runs'",
    "audit": "ACTION",
    "audit nix": "'nix'",
    "audit leaks": "--train",
    "audit leaks --train rows.csv --test nowhere.csv": "nowhere.csv",
    "audit leaks --train empty.csv --test rows.csv": "empty.csv",
    "audit leaks --train notes.txt --test rows.csv": "notes.txt",
    "audit leaks --train rows.csv --test rows.csv --label nix": "nix",
    "audit data --train rows.csv --threshold nix=0.5": "nix",
    "audit data --train rows.csv --threshold auc": "auc",
    "audit data --train rows.csv --threshold auc=nan": "nan",
    "audit data --train rows.csv --engine oracle": "oracle",
    "audit data --train rows.csv --memory-limit lots": "lots",
    "audit data --train rows.csv --json runs": "'runs'",
    "audit data --train no.module:thing": "no.module",
    "audit tokens --tokenizer nowhere.json --data rows.csv": "nowhere.json",
    "audit tokens --tokenizer broken.json --data rows.csv": "broken.json",
    "audit tokens --tokenizer t.json --data rows.csv --max-length 0": "'0'",
    "audit tokens --tokenizer t.json --data rows.csv --vocab-size -1": "'-1'",
    "train --steps 0": "steps",
    "train --steps nan": "nan",
    "train --lr nan": "nan",
    "train --lr -1": "-1",
    "train --task nix": "nix",
    "train --device tpu": "tpu",
    "train --resume nowhere": "nowhere",
    "train --out train.py": "train.py",
    "train --json runs": "runs",
    "train --workers -1": "-1",
    "train --nix": "--nix",
}


def _words(call: str) -> list[str]:
    import shlex

    return shlex.split(call)


def test_there_are_enough_of_them() -> None:
    assert len(FLAGS_OF_SCRIPTS) + len(CALLS) >= 100


@pytest.mark.parametrize(
    ("args", "says"),
    [
        *FLAGS_OF_SCRIPTS,
        *(pytest.param(_words(call), says, id=call) for call, says in CALLS.items()),
    ],
)
def test_a_wrong_call_is_one_line_with_its_value_and_status_2(
    args: list[str],
    says: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = _files(place)
    with pytest.raises(SystemExit) as left:
        main(args)
    said = capsys.readouterr()
    assert left.value.code == 2
    assert "Traceback" not in said.err and "bug of Sawbones" not in said.err
    lines = said.err.strip().splitlines()
    assert len(lines) == 1 and says in lines[0], said.err
    assert said.out == ""
    assert _files(place) == before, "a refused call leaves nothing behind"


def _files(place: Path) -> set[Path]:
    own = ("__pycache__", ".pyc", "-shm", "-wal")
    return {p for p in place.rglob("*") if not str(p).endswith(own)}


def _called(place: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sawbones", *args],
        cwd=place,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=100,
    )


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("diagnose", "--seconds", "nan", "train.py"), "'nan'"),
        (("show", "runs/zero"), "runs/zero"),
        (("check", ""), "''"),
        (("run", "--nproc-per-node", "-2", "train.py"), "'-2'"),
        (("nix",), "'nix'"),
    ],
)
def test_the_same_as_a_process(place: Path, args: tuple[str, ...], says: str) -> None:
    done = _called(place, *args)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and says in done.stderr


def test_a_rank_that_is_no_number_is_named(place: Path) -> None:
    done = _called(place, "run", "train.py", RANK="first")
    assert done.returncode == 2 and "'first'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_reader_that_has_enough_may_leave(place: Path) -> None:
    for args in (["faults"], ["explain", "loop.no-zero-grad"], ["lab", "list"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "sawbones", *args],
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0
        process.stderr.close()


def test_a_verdict_keeps_its_status_when_the_reader_leaves(place: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "sawbones", "diagnose", "runs/recorded"],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 4, "nothing was recorded there: inconclusive"
    process.stderr.close()


def test_without_standard_output_the_status_is_the_same(place: Path) -> None:
    command = f'exec "{sys.executable}" -m sawbones diagnose runs/recorded >&-'
    done = subprocess.run(
        ["sh", "-c", command], cwd=place, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stderr) == (4, "")


@pytest.mark.parametrize(
    "environment",
    [
        {"TERM": "dumb"},
        {"NO_COLOR": "1"},
        {"COLUMNS": "20"},
        {"COLUMNS": "1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
    ids=str,
)
def test_any_terminal_and_locale_will_do(place: Path, environment: dict[str, str]) -> None:
    for args in (("diagnose", "runs/recorded"), ("show", "runs/recorded"), ("faults", "loss.*")):
        done = _called(place, *args, **environment)
        assert done.returncode == (4 if args[0] == "diagnose" else 0), done.stderr
        assert "Traceback" not in done.stderr and "\x1b[" not in done.stdout


def test_values_that_no_table_expects_are_shown(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    for form, blob in (("table", "x'00ff'"), ("csv", "x'00ff'"), ("json", "x'00ff'")):
        sql = "select x'00ff' as blob, '[/red]' as markup, null as unknown, 9e999 as large"
        with pytest.raises(SystemExit) as left:
            main(["query", "--format", form, "runs/recorded", sql])
        said = capsys.readouterr()
        assert left.value.code == 0 and said.err == ""
        assert blob in said.out and "[/red]" in said.out


def test_runs_lists_what_it_can_read_and_names_what_it_cannot(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(SystemExit) as left:
        main(["runs", "runs"])
    said = capsys.readouterr().out
    assert left.value.code == 0
    for name in ("zero", "text", "directory", "newer", "other"):
        assert f"runs/{name}  not readable" in said


def test_a_bug_of_ours_is_one_line_with_the_place_of_its_details(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sawbones.cli import faults

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("SAWBONES_RAISE", raising=False)
    monkeypatch.setattr(faults, "Parser", None)  # as if we had broken it
    with pytest.raises(SystemExit) as left:
        main(["faults"])
    (line,) = capsys.readouterr().err.splitlines()
    (details,) = tmp_path.iterdir()
    assert left.value.code == 2
    assert "bug of Sawbones" in line and str(details) in line
    assert "TypeError" in details.read_text()
    monkeypatch.setenv("SAWBONES_RAISE", "1")
    with pytest.raises(TypeError):
        main(["faults"])


def test_a_report_that_cannot_be_written_is_still_shown(place: Path) -> None:
    done = _called(place, "diagnose", "--html", "/dev/full", "runs/recorded")
    assert done.returncode == 2 and "/dev/full could not be written: No space left" in done.stderr
    assert "Traceback" not in done.stderr and "inconclusive" in done.stdout.lower()
