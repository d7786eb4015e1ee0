"""action.yml, the hooks and the workflow: their steps are executed here, with the real command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture
def command_folder(tmp_path: Path) -> Path:
    """A folder with the command `sawbones`, as an installation would bring it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "sawbones"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m sawbones "$@"\n')
    command.chmod(0o755)
    return folder


def _filled(text: str, inputs: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: inputs[m[1]], text)


def _step(
    given: dict[str, str], commands: Path, outputs: Path, cwd: Path
) -> subprocess.CompletedProcess[str]:
    """The step that runs Sawbones, as the runner would start it."""
    inputs = {name: str(entry.get("default", "")) for name, entry in ACTION["inputs"].items()}
    inputs |= given
    step: dict[str, Any] = next(s for s in ACTION["runs"]["steps"] if s.get("id") == "sawbones")
    env = {name: _filled(value, inputs) for name, value in step["env"].items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=cwd / inputs["working-directory"],
        env={
            **os.environ,
            **env,
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_WORKSPACE": str(cwd),
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_action_runs_and_hands_on_status_and_sarif(
    project: Path, command_folder: Path, tmp_path: Path
) -> None:
    outputs = tmp_path / "outputs"
    given = {"target": "run", "sarif": str(tmp_path / "r.sarif"), "working-directory": project.name}
    done = _step({**given, "fail": "false"}, command_folder, outputs, project.parent)
    assert done.returncode == 0, done.stderr
    assert f"::error file={project.name}/train.py" in done.stdout
    told = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    assert told["status"] == "1" and Path(told["sarif"]).is_file()
    assert set(ACTION["outputs"]) == set(told)


def test_inputs_are_never_read_as_shell(command_folder: Path, tmp_path: Path) -> None:
    given = {"command": "$(touch owned)", "target": "; touch owned"}
    done = _step(given, command_folder, tmp_path / "outputs", tmp_path)
    assert done.returncode == 2 and not (tmp_path / "owned").exists()
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"], "inputs reach the script as variables only"


def test_hooks_name_commands_that_exist() -> None:
    from sawbones.cli.main import COMMANDS

    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    for hook in hooks:
        assert hook["entry"].split()[0] == "sawbones" and hook["entry"].split()[1] in COMMANDS


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("action.yml", "vendor.github-actions"),
        (".github/workflows/tests.yml", "vendor.github-workflows"),
        (".github/ISSUE_TEMPLATE/bug.yml", "vendor.github-issue-forms"),
        (".github/ISSUE_TEMPLATE/false-alarm.yml", "vendor.github-issue-forms"),
        (".github/ISSUE_TEMPLATE/missed-fault.yml", "vendor.github-issue-forms"),
    ],
)
def test_files_follow_the_schemas_of_github(file: str, schema: str) -> None:
    pytest.importorskip("check_jsonschema", reason="needs check-jsonschema")
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(ROOT / file)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_runs_what_a_developer_runs() -> None:
    """Every step is a target of the Makefile, and every Python of the matrix is supported."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands == ["make check", "make test", "make package"]
    for command in commands:
        asked = subprocess.run(
            [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True
        )
        assert asked.returncode == 0, asked.stderr
    classifiers = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for version in workflow["jobs"]["test"]["strategy"]["matrix"]["python"]:
        assert f"Python :: {version}" in classifiers
