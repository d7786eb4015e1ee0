"""Whatever a script does to change files or services of the user's, under `diagnose` it does not.

The ways are tried bare first: a way that changes nothing then would prove nothing later.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from decoys import TRACES, Decoys
from other_ways import UNGUARDED_WAYS, WITHOUT_LANDLOCK
from way_list import NEEDS_TORCH
from ways_to_write import WAYS

from sawbones.isolation import landlock
from sawbones.isolation.unguarded import UNGUARDED

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src"
PLAIN = [name for name in WAYS if name not in NEEDS_TORCH]
WITH_TORCH = sorted(NEEDS_TORCH)
OTHER_USER = "nobody"
NOT_HELD_BY_THIS_KERNEL = [
    name
    for name, entry in WITHOUT_LANDLOCK.items()
    if not (landlock.holds_signals() if entry == "signals" else landlock.holds_writes())
]
harm = pytest.mark.harm


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that another user can reach, other than tmp_path."""
    folder = Path(tempfile.mkdtemp(prefix="harm-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def python_of(user: str | None) -> list[str]:
    """The command that runs Python as that user, with our packages."""
    if user is None:
        return [sys.executable]
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user, with setpriv")
    facts = pwd.getpwnam(user)
    become = ["setpriv", f"--reuid={facts.pw_uid}", f"--regid={facts.pw_gid}", "--clear-groups"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = [*become, "env", python]  # what setpriv starts itself still has root's rights
        trial = [*command, "-c", "import sawbones.trials.bench"]
        if subprocess.run(trial, env=environment(""), capture_output=True).returncode == 0:
            return command
    pytest.skip(f"{user} can run no Python that finds our packages")


def environment(mode: str) -> dict[str, str]:
    packages = [str(SOURCE), *(path for path in sys.path if path.endswith("-packages"))]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(packages),
        "SAWBONES_ISOLATION": mode,
        "OMP_NUM_THREADS": "1",
        "HOME": tempfile.gettempdir(),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def try_ways(root: Path, names: list[str], mode: str, user: str | None = None) -> set[str]:
    """The ways that reached the user's world."""
    with Decoys(root, names) as decoys:
        decoys.start_process(user)
        if user is not None:
            for path in (root, *root.rglob("*"), decoys.shared_memory):
                shutil.chown(path, user)
        before = decoys.state()
        command = [*python_of(user), str(HERE / "run_isolated.py"), str(decoys.home)]
        done = subprocess.run(
            [*command, *decoys.arguments()],
            env=environment(mode),
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, done.stderr
        used, _, said, left = json.loads(done.stdout)
        assert used == mode
        assert "all tried" in said, said
        assert not left, "the scratch folder is gone"
        return decoys.harmed(before)


def traces(names: list[str]) -> set[str]:
    return {TRACES.get(name, name) for name in names}


def run_bare(root: Path, names: list[str]) -> set[str]:
    with Decoys(root, names) as decoys:
        decoys.start_process()
        before = decoys.state()
        command = [sys.executable, "train.py", *decoys.arguments()]
        done = subprocess.run(command, cwd=decoys.home, capture_output=True, text=True, timeout=280)
        assert "all tried" in done.stdout, done.stderr
        assert [
            line for line in done.stdout.splitlines() if not line.endswith(("did", "tried"))
        ] == []
        return decoys.harmed(before)


def test_there_are_enough_ways() -> None:
    assert len(WAYS) >= 40


def test_bare_every_way_reaches_the_user(tmp_path: Path) -> None:
    assert run_bare(tmp_path, PLAIN) == traces(PLAIN)


@harm
def test_bare_every_way_of_torch_reaches_the_user(tmp_path: Path) -> None:
    assert run_bare(tmp_path, WITH_TORCH) == traces(WITH_TORCH)


@pytest.mark.parametrize("user", [None, OTHER_USER], ids=["same_user", "other_user"])
def test_in_kernel_mode_no_way_reaches_the_user(open_folder: Path, user: str | None) -> None:
    assert try_ways(open_folder, PLAIN, "kernel", user) == set()


@pytest.mark.parametrize("user", [None, OTHER_USER], ids=["same_user", "other_user"])
def test_in_patched_mode_only_documented_ways_reach_the_user(
    open_folder: Path, user: str | None
) -> None:
    reached = try_ways(open_folder, PLAIN, "patched", user)
    assert reached <= traces([*UNGUARDED_WAYS, *NOT_HELD_BY_THIS_KERNEL])


@pytest.mark.parametrize("mode", ["kernel", "patched"])
def test_no_way_of_torch_reaches_the_user(open_folder: Path, mode: str) -> None:
    assert try_ways(open_folder, WITH_TORCH, mode) == set()


@harm
@pytest.mark.parametrize("mode", ["kernel", "patched"])
def test_no_way_of_torch_reaches_another_user(open_folder: Path, mode: str) -> None:
    assert try_ways(open_folder, WITH_TORCH, mode, OTHER_USER) == set()


def test_the_documentation_lists_what_patched_mode_does_not_hold_back() -> None:
    text = (HERE.parents[1] / "docs" / "how-to" / "isolation.md").read_text(encoding="utf-8")
    listed = dict(
        line.removeprefix("- `").split("`: ", 1)
        for line in text.splitlines()
        if line.startswith("- `") and "`: " in line
    )
    assert listed == UNGUARDED
    assert {*UNGUARDED_WAYS.values(), *WITHOUT_LANDLOCK.values()} <= set(UNGUARDED)
