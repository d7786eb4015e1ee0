"""Compiled code in patched mode: what it reaches, what the report says, and what keeps working."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from decoys import Decoys
from users import OTHER_USER, environment, python_of

from sawbones.diagnosis.held_back import held_back
from sawbones.isolation import supervising
from sawbones.isolation.rulings import Rulings
from sawbones.isolation.unguarded import UNGUARDED, unguarded_here
from sawbones.observe.options import Options
from sawbones.schema import Run
from sawbones.trials.bench import Bench, ChildFailed, Patient

HERE = Path(__file__).resolve().parent
PLAIN = Options(deep_steps=(), deep_every=0, batch_samples=0)
USERS = pytest.mark.parametrize("user", [None, OTHER_USER], ids=["same_user", "other_user"])
ATTRIBUTES = ("libc_chmod", "libc_chown", "libc_utimes", "libc_times_of_an_open_file")
CONNECTIONS = ("libc_connect", "libc_connect_ipv6", "libc_connect_unix", "libc_datagram")
ARRIVED = {b"libc", b"libc6", b"libc-unix", b"libc-udp"}
harm = pytest.mark.harm


@pytest.fixture(autouse=True)
def patched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if reasons := unguarded_here(network=False):
        pytest.skip(f"this machine cannot: {', '.join(reasons.values())}")
    monkeypatch.setenv("SAWBONES_ISOLATION", "patched")
    yield


def try_native(
    decoys: Decoys, user: str | None, allow: tuple[str, ...] = ()
) -> tuple[set[tuple[str, str]], set[str]]:
    """What was held back, by kind and target; and the ways that left a trace."""
    script = decoys.home / "train.py"
    if "import torch" not in script.read_text():
        script.write_text("import torch\n" + script.read_text().partition("annotations\n")[2])
    if user is not None:
        for path in (decoys.root, *decoys.root.rglob("*"), decoys.shared_memory):
            shutil.chown(path, user)
    before = decoys.state()
    done = subprocess.run(
        [*python_of(user), str(HERE / "run_isolated.py"), str(decoys.home), *decoys.arguments()],
        env=environment("patched", allow),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    _, held, said, _ = json.loads(done.stdout)
    assert "all tried" in said, said
    return {(row["what"], row["target"]) for row in held}, decoys.harmed(before)


@USERS
def test_attributes_stay_as_they_are_and_change_where_the_file_is_allowed(
    open_folder: Path, user: str | None
) -> None:
    with Decoys(open_folder, list(ATTRIBUTES)) as decoys:
        files = {("files", str(decoys.outside / name / "file.txt")) for name in ATTRIBUTES}
        assert try_native(decoys, user) == (files, set())
        allow = (f"files:{decoys.outside}",)
        assert try_native(decoys, user, allow) == (set(), set(ATTRIBUTES))


@USERS
def test_connections_arrive_only_where_the_network_is_allowed(
    open_folder: Path, user: str | None
) -> None:
    with Decoys(open_folder, list(CONNECTIONS)) as decoys:
        held, _ = try_native(decoys, user)
        targets = (
            f"127.0.0.1:{decoys.port}",
            f"[::1]:{decoys.port6}",
            f"unix:{decoys.root / 'service'}",
            f"127.0.0.1:{decoys.datagrams}",
        )
        assert held == {("network", target) for target in targets}
        assert decoys.received == []
        held, _ = try_native(decoys, user, ("network",))
        assert held == set()
        assert set(decoys.received) == ARRIVED


def test_a_segment_of_shared_memory_is_written_only_where_it_is_allowed(open_folder: Path) -> None:
    with Decoys(open_folder, ["libc_shared_memory"]) as decoys:
        segment = str(decoys.shared_memory)
        assert try_native(decoys, None) == ({("files", segment)}, set())
        allow = (f"files:{segment}",)
        assert try_native(decoys, None, allow) == (set(), {"shared_memory"})


@pytest.mark.parametrize("mode", ["kernel", "patched"])
def test_a_segment_that_is_allowed_is_the_real_one_for_python_as_well(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("SAWBONES_ISOLATION", mode)
    with Decoys(open_folder, []) as decoys:
        name = decoys.shared_memory.name
        run, said = run_script(
            decoys.home,
            "import torch\nfrom multiprocessing.shared_memory import SharedMemory\n"
            f"segment = SharedMemory({name!r})\nsegment.buf[:4] = b'mine'\nsegment.close()\n"
            "from multiprocessing.resource_tracker import unregister\n"
            f"unregister('/{name}', 'shared_memory')\n",  # Python would remove it at its end
            (f"files:{decoys.shared_memory}",),
        )
        assert run.ending.kind == "finished", said
        assert decoys.shared_memory.read_bytes()[:4] == b"mine"


@USERS
def test_a_signal_to_another_process_is_held_back_and_named(
    open_folder: Path, user: str | None
) -> None:
    with Decoys(open_folder, ["libc_kill"]) as decoys:
        decoys.start_process(user)
        process = json.loads(decoys.arguments()[2])["process"]
        assert try_native(decoys, user) == ({("signals", str(process))}, set())


def run_script(
    folder: Path, text: str, allow: tuple[str, ...] = (), ranks: int = 1
) -> tuple[Run, str]:
    (folder / "train.py").write_text(text)
    with Bench(Patient("train.py", (), folder, ranks), 200, allow) as bench:
        run = bench.execute(PLAIN)
    return run, bench.log_tail


def test_the_report_has_one_line_for_each_with_its_flag(tmp_path: Path) -> None:
    target = tmp_path / "outside.txt"
    target.touch()
    home = tmp_path / "home"
    home.mkdir()
    run, said = run_script(
        home,
        "import ctypes, struct, torch\nlibc = ctypes.CDLL(None)\n"
        f"print(libc.chmod({str(target)!r}.encode(), 0), libc.chmod({str(target)!r}.encode(), 0))\n"
        "address = struct.pack('=H', 2) + struct.pack('!H4B8x', 80, 192, 0, 2, 1)\n"
        "print(libc.connect(libc.socket(2, 1, 0), address, 16), libc.kill(1, 10))\n",
    )
    assert said.split() == ["-1"] * 4
    assert set(held_back(run)) == {
        f"changing {target} was held back; to allow it: --allow files:{target} (the script then "
        "really writes there)",
        "a connection to 192.0.2.1:80 was held back; to allow it: --allow network",
        "a signal to process 1 was held back; no flag allows it",
    }


@pytest.mark.parametrize("last_words, is_named", [("cannot resolve host", True), ("bug", False)])
def test_a_name_server_is_named_only_where_the_script_dies_of_it(
    tmp_path: Path, last_words: str, is_named: bool
) -> None:
    run, _ = run_script(
        tmp_path,
        "import ctypes, struct, torch\nlibc = ctypes.CDLL(None)\n"
        "address = struct.pack('=H', 2) + struct.pack('!H4B8x', 53, 192, 0, 2, 1)\n"
        "assert libc.connect(libc.socket(2, 2, 0), address, 16) == -1\n"
        f"raise RuntimeError({last_words!r})\n",
    )
    named = (
        "a question to the name server 192.0.2.1:53 was held back; to allow it: --allow network",
    )
    assert held_back(run) == (named if is_named else ())


def test_settings_of_the_system_cannot_be_written_and_those_of_the_process_can(
    tmp_path: Path,
) -> None:
    setting = Path("/proc/sys/vm/swappiness")
    text = (  # with the values that they have, for the day that this test fails
        "import ctypes, os, pathlib, torch\n"
        "pathlib.Path('/proc/self/coredump_filter').write_text('0x33')\n"
        "name = os.uname().nodename.encode()\n"
        "print(ctypes.CDLL(None).sethostname(name, len(name)))\n"
        f"pathlib.Path({str(setting)!r}).write_text({setting.read_text()!r})\n"
    )
    run, said = run_script(tmp_path, text)
    assert said.split()[0] == "-1", said
    place = f"{setting} (train.py:5)"
    assert held_back(run) == (f"writing to {place} was held back; no flag allows it",)


def test_shared_memory_that_a_script_leaves_is_removed(tmp_path: Path) -> None:
    name = f"sawbones-left-{os.getpid()}"
    flags = os.O_CREAT | os.O_RDWR
    text = (
        f"import ctypes, torch\nprint(ctypes.CDLL(None).shm_open(b'/{name}', {flags}, 384) > 2)\n"
    )
    _, said = run_script(tmp_path, text)
    assert said.split() == ["True"]
    assert not Path("/dev/shm", name).exists()


def test_processes_of_a_run_reach_each_other_through_compiled_code(tmp_path: Path) -> None:
    text = """
import ctypes, multiprocessing, os, signal, socket, struct, torch
libc = ctypes.CDLL(None)

def connect(port, name):
    there = struct.pack('=H', 2) + struct.pack('!H4B8x', port, 127, 0, 0, 1)
    print('tcp', libc.connect(libc.socket(2, 1, 0), there, 16), flush=True)
    there = struct.pack('=H', 1) + b'\\0' + name
    print('unix', libc.connect(libc.socket(1, 1, 0), there, len(there)), flush=True)
    number = libc.shm_open(b'/' + name, os.O_RDWR, 0o600)
    print('memory', libc.write(number, b'abc', 3), flush=True)
    signal.pause()

servers = socket.create_server(('127.0.0.1', 0)), socket.socket(socket.AF_UNIX)
name = b'sawbones-test-%d' % os.getpid()
servers[1].bind(b'\\0' + name)
servers[1].listen()
libc.shm_open(b'/' + name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
other = multiprocessing.get_context('fork').Process(
    target=connect, args=(servers[0].getsockname()[1], name))
other.start()
for server in servers:
    server.accept()
import time
while os.stat('/dev/shm/' + name.decode()).st_size < 3:
    time.sleep(0.01)
print('signal', libc.kill(other.pid, 9), 'unlinked', libc.shm_unlink(b'/' + name))
other.join()
os.close(os.open('made.txt', os.O_CREAT | os.O_WRONLY))
print('mode', libc.chmod(b'made.txt', 0o600), 'times', libc.utimes(b'made.txt', None))
"""
    run, said = run_script(tmp_path, text)
    assert run.ending.kind == "finished", said
    assert run.held_back == ()
    words = said.split()
    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        "tcp": "0",
        "unix": "0",
        "memory": "3",
        "signal": "0",
        "unlinked": "0",
        "mode": "0",
        "times": "0",
    }


LOADER = """
import sys, torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    rows = TensorDataset(torch.arange(64.0).reshape(32, 2))
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    torch.multiprocessing.set_sharing_strategy(SHARING)
    for (x,) in DataLoader(rows, 4, num_workers=2, multiprocessing_context=CONTEXT):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    torch.save(model.state_dict(), "model.pt")
    print(sorted(torch.load("model.pt")))
"""


@pytest.mark.parametrize(
    "context, sharing",
    [
        ("fork", "file_descriptor"),
        pytest.param("spawn", "file_descriptor", marks=harm),
        pytest.param("fork", "file_system", marks=harm),
    ],
)
def test_loader_workers_and_checkpoints_work(tmp_path: Path, context: str, sharing: str) -> None:
    text = LOADER.replace("CONTEXT", repr(context)).replace("SHARING", repr(sharing))
    run, said = run_script(tmp_path, text)
    assert run.ending.kind == "finished", said
    assert run.num_steps == 8 and run.held_back == ()
    assert "['bias', 'weight']" in said
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_regression_test_supervises_the_script_that_it_runs(tmp_path: Path) -> None:
    outside, home = tmp_path / "outside.txt", tmp_path / "home"
    outside.touch(0o644)
    home.mkdir()
    (home / "train.py").write_text(
        f"import ctypes, torch\nctypes.CDLL(None).chmod({str(outside)!r}.encode(), 0)\n"
    )
    with Bench(Patient("train.py", (), home), 200) as bench:
        room = bench.room()
        file = room.box / "pinned.py"
        file.write_text(
            "from sawbones.testing import observe\n"
            "def test_it():\n"
            "    assert [row.what for row in observe('train.py').held_back] == ['files']\n"
        )
        assert bench.run_module(["sawbones.fixing.pinned_child", str(file)], room, 150) == 0, (
            bench.log_tail
        )
    assert outside.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("lacking", ["landlock", "seccomp", "landlock,seccomp"])
def test_what_a_machine_cannot_hold_back_needs_a_flag_before_anything_runs(
    tmp_path: Path, lacking: str
) -> None:
    (tmp_path / "train.py").write_text("print('it ran')\nraise SystemExit(3)\n")
    command = [sys.executable, str(HERE / "refusing.py"), lacking, sys.executable, "-m", "sawbones"]
    usual = environment("patched")

    def diagnose(*flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "diagnose", *flags, "train.py"],
            cwd=tmp_path,
            env=usual,
            capture_output=True,
            text=True,
        )

    refused = diagnose()
    assert refused.returncode == 2, refused.stderr
    (line,) = refused.stderr.strip().splitlines()
    assert "--allow native" in line and "Nothing was run" in line
    named = {name for name in UNGUARDED if f"{name}" in line}
    by_supervisor = {"native-connections", "native-attributes", "native-shared-memory"}
    assert named == (
        (by_supervisor if "seccomp" in lacking else set())
        | ({"native-code"} if "landlock" in lacking else set())
        | ({"signals"} if lacking == "landlock,seccomp" else set())
    )
    assert "it ran" not in refused.stdout + refused.stderr
    allowed = diagnose("--allow", "native")
    assert allowed.returncode != 2, allowed.stderr
    first = allowed.stderr.splitlines()[0]
    assert "not held back: " in first and all(name in first for name in named)
    assert "SystemExit" in allowed.stdout or "it ran" in allowed.stdout + allowed.stderr


def test_without_landlock_the_supervisor_still_refuses_writes_and_signals(
    open_folder: Path,
) -> None:
    names = ["libc_write", "libc_unlink", "libc_truncate", "libc_kill", "arrow_file"]
    with Decoys(open_folder, names) as decoys:
        decoys.start_process()
        before = decoys.state()
        command = [sys.executable, str(HERE / "refusing.py"), "landlock", sys.executable]
        done = subprocess.run(
            [*command, str(HERE / "run_isolated.py"), str(decoys.home), *decoys.arguments()],
            env=environment("patched", ("native",)),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "all tried" in json.loads(done.stdout)[2]
        assert decoys.harmed(before) == set()


def test_a_question_that_cannot_be_judged_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "outside.txt"
    target.touch(0o644)

    def fails(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(Rulings, "_attributes", fails)
    home = tmp_path / "home"
    home.mkdir()
    text = f"import ctypes, torch\nprint(ctypes.CDLL(None).chmod({str(target)!r}.encode(), 0))\n"
    run, said = run_script(home, text)
    assert run.ending.kind == "finished" and said.split() == ["-1"]
    assert target.stat().st_mode & 0o777 == 0o644


def test_a_supervisor_that_ends_early_ends_the_script_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(supervising.Supervisor, "_answer", fails)
    text = "import time, torch\nopen('made.txt', 'w')\ntime.sleep(100)\n"
    with pytest.raises(ChildFailed, match=r"could not be supervised any more: .*a bug of ours"):
        run_script(tmp_path, text)
