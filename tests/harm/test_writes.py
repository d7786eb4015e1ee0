"""Whatever a script does to change files or services of the user's, under `diagnose` it does not.

The ways are tried bare first: a way that changes nothing then would prove nothing later.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from decoys import TRACES, Decoys
from native_ways import UNGUARDED_WAYS
from users import OTHER_USER, environment, python_of
from way_list import NEEDS_TORCH
from ways_to_write import WAYS

from sawbones.isolation.unguarded import UNGUARDED, unguarded_here

HERE = Path(__file__).resolve().parent
PLAIN = [name for name in WAYS if name not in NEEDS_TORCH]
WITH_TORCH = sorted(NEEDS_TORCH)
harm = pytest.mark.harm


def try_ways(root: Path, names: list[str], mode: str, user: str | None = None) -> set[str]:
    """The ways that reached the user's world."""
    with Decoys(root, names) as decoys:
        decoys.start_process(user)
        if user is not None:
            for path in (root, *root.rglob("*"), decoys.shared_memory, decoys.other_memory):
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
def test_in_patched_mode_only_ways_that_need_a_flag_reach_the_user(
    open_folder: Path, user: str | None
) -> None:
    unheld = unguarded_here(network=False)  # empty where seccomp and Landlock work
    reached = try_ways(open_folder, PLAIN, "patched", user)
    assert reached <= traces([name for name, entry in UNGUARDED_WAYS.items() if entry in unheld])


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
    assert set(UNGUARDED_WAYS.values()) == set(UNGUARDED)
