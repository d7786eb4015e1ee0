"""sawbones check on the command line: exit codes, formats, messages."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import validate

from sawbones.cli.main import main
from sawbones.report.json_report import report_schema

SUBJECTS = Path(__file__).parent.parent / "triage" / "subjects.py"


def _check(*args: str, subject: str = "subject") -> int:
    with pytest.raises(SystemExit) as end:
        main(["check", *args, f"{SUBJECTS}:{subject}"])
    return int(end.value.code or 0)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_sick_subject_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = (
        "--json",
        "r.json",
        "--junit",
        "r.xml",
        "--sarif",
        "r.sarif",
        "--layer",
        "pipeline",
        "--layer",
        "loss",
        "--layer",
        "optimizer",
        "--steps",
        "6",
    )
    assert _check(*flags, subject="double_softmax") == 1
    shown = capsys.readouterr()
    assert (
        "SICK" in shown.out
        and "subjects.py" in shown.out
        and "Not looked at yet: optimizer" in shown.out
    )
    assert "sawbones: loss  loss.unstable-log" in shown.err
    report = json.loads(Path("r.json").read_text())
    validate(report, report_schema())
    assert report["findings"][0]["fault"] == "loss.double-softmax"
    cases = {
        f"{c.get('classname')}.{c.get('name')}": c
        for c in ElementTree.parse("r.xml").iter("testcase")
    }
    assert "softmax" in (cases["loss.double-softmax"].find("failure").get("message") or "")  # type: ignore[union-attr]
    assert cases["loss.silent-broadcast"].find("failure") is None
    assert cases["pipeline.padding-side"].find("skipped") is not None
    run = json.loads(Path("r.sarif").read_text())["runs"][0]
    result = run["results"][0]
    assert (
        result["ruleId"]
        == "loss.double-softmax"
        == run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"]
    )
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith(
        "subjects.py"
    )


def test_grades_of_the_project_and_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pyproject.toml").write_text(
        '[tool.sawbones]\nsoft = ["loss.double-softmax"]\n', encoding="utf-8"
    )
    assert (
        _check(
            "--layer",
            "loss",
            "--steps",
            "6",
            "--quiet",
            "--json",
            "r.json",
            subject="double_softmax",
        )
        == 0
    )
    assert (
        "soft by pyproject.toml loss.double-softmax"
        in json.loads(Path("r.json").read_text())["notes"][0]
    )
    assert (
        _check(
            "--layer",
            "loss",
            "--steps",
            "6",
            "--quiet",
            "--hard",
            "loss.*",
            subject="double_softmax",
        )
        == 1
    )
    assert "loss.double-softmax likely" in capsys.readouterr().out


def test_a_crash_and_usage_errors_have_their_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(subject="crashing") == 3
    assert _check(subject="nope") == 2
    assert "has no 'nope'" in capsys.readouterr().err
    assert _check("--only", "loss.doble-softmax") == 2
    assert "Nearest: loss.double-softmax" in capsys.readouterr().err
    assert _check("--steps", "0") == 2
    assert _check("--junit", "nowhere/r.xml") == 2
    assert "mkdir -p nowhere" in capsys.readouterr().err
