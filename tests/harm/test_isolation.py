"""The two modes: which one is taken, what they let through, and that a script computes the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from decoys import Decoys

from sawbones.diagnosis.held_back import held_back
from sawbones.isolation import landlock
from sawbones.isolation.allowing import split
from sawbones.isolation.choosing import ISOLATION
from sawbones.observe.options import Options
from sawbones.schema import Run
from sawbones.schema.errors import SawbonesError
from sawbones.schema.one_off import HeldBack
from sawbones.trials.bench import Bench, ChildFailed, DiedAtOnce, Patient

HERE = Path(__file__).resolve().parent
PLAIN = Options(deep_steps=(), deep_every=0, batch_samples=0)
MODES = pytest.mark.parametrize("mode", ["kernel", "patched"])
TRAIN = """
import os, sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
if "RANK" in os.environ:
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.Adam(model.parameters(), 0.1)
losses = []
for step in range(5):
    optimizer.zero_grad()
    x = torch.randn(8, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item().hex())
print("losses", *losses)
"""


def run_script(
    folder: Path, text: str, allow: tuple[str, ...] = (), ranks: int = 1
) -> tuple[Run, str]:
    (folder / "train.py").write_text(text)
    with Bench(Patient("train.py", (), folder, ranks), 200, allow) as bench:
        run = bench.execute(PLAIN)
    return run, bench.log_tail


@MODES
def test_a_script_computes_the_same_bits_and_its_places_are_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", mode)
    run, said = run_script(tmp_path, TRAIN)
    bare = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.splitlines()[-1] == bare.stdout.splitlines()[-1]
    assert run.num_steps == 5
    assert {e.site.file for e in run.of_kind("backward") if e.site} == {"train.py"}


@pytest.mark.harm
@MODES
def test_two_ranks_find_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", mode)
    run, said = run_script(tmp_path, TRAIN, ranks=2)
    assert run.num_steps == 5, said
    assert np.isfinite(run.losses).all()
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@MODES
def test_a_connection_that_was_held_back_is_named_with_the_flag_that_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", mode)
    text = (
        "import torch\nimport "
        "urllib.request\nurllib.request.urlopen('http://models.example:81/a')\n"
    )
    run, _ = run_script(tmp_path, text)
    assert run.ending.kind == "exception"
    assert run.held_back == (HeldBack("network", "models.example:81", "train.py:3"),)
    (line,) = held_back(run)
    assert "models.example:81" in line and "--allow network" in line


FILES = """
import os, pathlib, sqlite3, torch
print("seen", pathlib.Path("kept/old.txt").read_text())
pathlib.Path("kept/new.txt").write_text("new")
with open(os.path.abspath("kept/more.txt"), "a") as file:
    file.write("more")
os.replace("kept/more.txt", "kept/moved.txt")
os.remove("kept/old.txt")
print("gone", not os.path.exists("kept/old.txt"), sorted(os.listdir("kept")))
os.makedirs("kept/a/b")
torch.save({}, "kept/a/b/state.pt")
with sqlite3.connect("kept/log.db") as log:
    log.execute("create table t (x)")
pathlib.Path("single.txt").write_text("second")
pathlib.Path("other.txt").write_text("changed")
"""


@MODES
def test_what_is_allowed_by_path_is_really_written_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", mode)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "old.txt").write_text("old")
    for name in ("single.txt", "other.txt"):
        (tmp_path / name).write_text("first")
    allow = (f"files:{kept}", f"files:{tmp_path / 'single.txt'}")
    run, said = run_script(tmp_path, FILES, allow)
    assert run.ending.kind == "finished", said
    assert "seen old" in said
    assert "gone True ['moved.txt', 'new.txt']" in said
    written = {str(p.relative_to(kept)) for p in kept.rglob("*") if p.is_file()}
    assert written == {"new.txt", "moved.txt", "a/b/state.pt", "log.db"}
    assert (tmp_path / "single.txt").read_text() == "second"
    assert (tmp_path / "other.txt").read_text() == "first"
    assert {p.name for p in tmp_path.iterdir()} == {"train.py", "kept", "single.txt", "other.txt"}


def test_compiled_code_that_landlock_refused_is_named_with_the_flag_that_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not landlock.holds_writes():
        pytest.skip("this kernel has no Landlock")
    monkeypatch.setenv("SAWBONES_ISOLATION", "patched")
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    target = outside / "rows.bin"
    text = f"import pyarrow, torch\npyarrow.OSFile({str(target)!r}, 'wb').write(b'x')\n"
    run, said = run_script(home, text)
    assert run.ending.kind == "exception", said
    assert run.held_back == (HeldBack("files", str(target), "train.py:2"),)
    assert f"--allow files:{target}" in held_back(run)[0]
    assert not target.exists()
    run, said = run_script(home, text, (f"files:{outside}",))
    assert run.ending.kind == "finished", said
    assert target.read_bytes() == b"x"


def test_a_path_that_cannot_be_allowed_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "a,b").mkdir()
    assert split(["network,files:a,b", "files:c"]) == ("network", "files:a,b", "files:c")
    for path in ("nowhere", "/", "/proc/self"):
        with pytest.raises(SawbonesError, match=f"--allow files:{path}: "):
            run_script(tmp_path, "open('ran', 'w')", (f"files:{path}",))
    assert {p.name for p in tmp_path.iterdir()} == {"train.py", "a,b"}


@MODES
def test_a_service_is_reached_only_where_that_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", mode)
    with Decoys(tmp_path, []) as decoys:
        text = (
            "import socket, sys\n"
            f"socket.create_connection(('127.0.0.1', {decoys.port}), 5).sendall(b'hello')\n"
            "import torch\n"
        )
        with pytest.raises(DiedAtOnce) as death:
            run_script(decoys.home, text)
        assert [row.what for row in death.value.held_back] == ["network"]
        assert str(decoys.port) in death.value.held_back[0].target
        assert decoys.received == []
        run, _ = run_script(decoys.home, text, allow=("network",))
        assert run.ending.kind == "finished" and not run.held_back
        assert decoys.received == [b"hello"]


def test_patched_programs_run_where_they_are_allowed_and_write_into_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", "patched")
    text = (
        "import subprocess, torch\n"
        "subprocess.run('echo changed > train.py', shell=True, check=True)\n"
        "print(open('train.py').read())\n"
    )
    run, said = run_script(tmp_path, text, allow=("subprocess",))
    assert run.ending.kind == "finished" and said.strip() == "changed"
    assert (tmp_path / "train.py").read_text() == text


def test_what_cannot_be_allowed_is_a_usage_error_that_lists_what_can(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    command = [sys.executable, "-m", "sawbones", "diagnose", "--allow", "disk", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--allow disk" in done.stderr and "network, subprocess" in done.stderr


@pytest.mark.parametrize("quiet", [[], ["--quiet"]], ids=["usual", "quiet"])
def test_the_first_line_of_a_diagnosis_names_the_mode(tmp_path: Path, quiet: list[str]) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(3)\n")
    command = [sys.executable, "-m", "sawbones", "diagnose", *quiet, "--json", "report.json"]
    environment = {**os.environ, "SAWBONES_ISOLATION": "kernel"}
    done = subprocess.run(
        [*command, "train.py"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stderr.splitlines()[0].startswith(f"sawbones: {ISOLATION} kernel")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["environment"]["isolation"] == "kernel"


def test_where_namespaces_are_refused_the_mode_is_patched_and_says_why(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is needed to make a place where namespaces are refused")
    names = ["open_for_writing", "os_remove", "shell_append"]
    code = (
        "import sys; from pathlib import Path; from sawbones.trials.bench import Bench, Patient\n"
        "with Bench(Patient('train.py', (), Path(sys.argv[1])), 60) as bench: "
        "print(bench.isolation)"
    )
    with Decoys(tmp_path, names) as decoys:
        shell = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
        command = ["unshare", "-Ur", "sh", "-c", shell, "sh", sys.executable, "-c", code]
        environment = {k: v for k, v in os.environ.items() if k != "SAWBONES_ISOLATION"}
        done = subprocess.run(
            [*command, str(decoys.home)], env=environment, capture_output=True, text=True
        )
    assert done.stdout.startswith(f"{ISOLATION} patched (namespaces refused: unshare:"), done


def test_a_room_that_cannot_be_made_in_full_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAWBONES_ISOLATION", raising=False)
    (tmp_path / "train.py").write_text("print('it ran')\nimport torch\n")
    with Bench(Patient("train.py", (), tmp_path), 100) as bench:
        if not bench.isolation.is_kernel:
            pytest.skip(bench.isolation.reason)
        room = bench.room()
        assert room.layers is not None
        shutil.rmtree(next(layer.work for layer in room.layers.layers if layer.needed))
        with pytest.raises(ChildFailed, match="namespaces were refused"):
            bench.execute(PLAIN, room=room)
        assert (room.box / "output.log").read_text() == ""
        assert bench.isolation.mode == "patched"
        bench.execute(PLAIN)
        assert "it ran" in bench.log_tail


def test_a_mode_that_does_not_exist_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", "loose")
    with pytest.raises(SawbonesError, match="either kernel or patched"):
        Bench(Patient("train.py", (), tmp_path), 10)


@MODES
def test_a_second_child_goes_on_from_what_the_first_one_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", mode)
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "train.py").write_text(
        "import os, torch\nprint(sorted(os.listdir('.')))\n"
        "if os.path.exists('old.txt'):\n    os.remove('old.txt')\n"
        "open('checkpoint.pt', 'a').write('x')\nprint(open('checkpoint.pt').read())\n"
    )
    with Bench(Patient("train.py", (), tmp_path), 100) as bench:
        room = bench.room()
        bench.execute(PLAIN, room=room)
        first = bench.log_tail.splitlines()
        bench.execute(PLAIN, room=room)
        second = bench.log_tail.splitlines()
    assert first == ["['old.txt', 'train.py']", "x"]
    assert second == ["['checkpoint.pt', 'train.py']", "xx"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.txt", "train.py"]
