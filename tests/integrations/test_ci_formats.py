"""SARIF, JUnit, annotations and the job summary, from a report and from the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from sawbones.cli.main import main
from sawbones.report.github import to_annotations
from sawbones.report.junit import to_junit
from sawbones.report.markdown import to_markdown
from sawbones.schema import (
    CouldNotLook,
    Evidence,
    Finding,
    Fix,
    Ignored,
    Report,
    Site,
    Symptom,
)

ROOT = Path(__file__).resolve().parents[2]
FAULT = "loop.no-zero-grad"


def _report(title: str = "Gradients are never cleared", **more: object) -> Report:
    finding = Finding(
        FAULT,
        "proven",
        0.9,
        title,
        (Site("sub dir/train.py", 13, "train", "loss.backward()"),),
        (Evidence("100 % of gradients are kept\nby every step", value=1.0, expected=0.0),),
        Fix("Clear them once per step.", patch="--- a\n+++ b\n+```\n+opt.zero_grad()\n"),
    )
    return Report("sick", "train.py", 40, 1.5, (finding,), **more)  # type: ignore[arg-type]


def _unescaped(text: str) -> str:
    for code, char in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


def test_an_annotation_is_one_line_that_says_everything() -> None:
    (line,) = to_annotations(_report("50 % of a, b: kept\n::error::forged"), "packages/nets")
    assert "\n" not in line
    head, _, message = line.partition("::error ")[2].partition("::")
    properties = dict(pair.split("=", 1) for pair in head.split(","))
    assert properties["file"] == "packages/nets/sub dir/train.py" and properties["line"] == "13"
    assert _unescaped(properties["title"]) == f"{FAULT} (proven)"
    told = _unescaped(message).split("\n")
    assert told[0] == "50 % of a, b: kept" and "Fix: Clear them once per step." in told


def test_an_illness_without_a_cause_is_annotated_and_an_explained_one_is_not() -> None:
    ill = Symptom("diverges", "ill", "the loss climbs")
    known = Symptom("does-not-learn", "ill", "no better", explained_by=FAULT)
    lines = to_annotations(_report(symptoms=(ill, known)))
    assert [line.split("title=")[1].split("::")[0] for line in lines] == [
        f"{FAULT} (proven)",
        "sawbones%3A diverges",
    ]


def test_no_text_of_the_report_becomes_markup() -> None:
    page = to_markdown(_report("<script>x</script> | [a](b) `c` **d**"))
    assert "<script>" not in page and "[a](b)" not in page and "**d**" not in page
    row = next(line for line in page.splitlines() if line.startswith(f"| `{FAULT}`"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    fences = re.findall(r"^(`{3,})(?:diff)?$", page, flags=re.MULTILINE)
    assert fences == ["````", "````"], "a fence inside the patch does not end the block"


def _diagnose(*args: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["diagnose", *args])
    return int(end.value.code or 0)


@pytest.fixture(scope="module")
def handed_over(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `diagnose` prints and writes in a job whose repository begins one folder higher."""
    import contextlib
    import io
    import os

    out = tmp_path_factory.mktemp("out")
    kept = {name: os.environ.get(name) for name in ("GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY")}
    was = Path.cwd()
    (out / "job.md").write_text("# an earlier step\n")
    os.environ.update(GITHUB_WORKSPACE=str(project.parent), GITHUB_STEP_SUMMARY=str(out / "job.md"))
    os.chdir(project)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            status = _diagnose(
                *("--format", "github", "--sarif", str(out / "r.sarif")),
                *("--junit", str(out / "r.xml"), "run"),
            )
    finally:
        os.chdir(was)
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
    assert status == 1
    (out / "printed").write_text(printed.getvalue())
    return out


def test_diagnose_annotates_the_line_and_writes_the_job_page(
    handed_over: Path, project: Path
) -> None:
    printed = (handed_over / "printed").read_text()
    line = next(line for line in printed.splitlines() if line.startswith("::error"))
    assert f"file={project.name}/train.py,line=" in line and FAULT in line
    page = (handed_over / "job.md").read_text()
    assert page.startswith("# an earlier step\n## ❌ sick") and f"`{FAULT}`" in page


def test_sarif_of_diagnose_points_into_the_repository(handed_over: Path, project: Path) -> None:
    document = json.loads((handed_over / "r.sarif").read_text())
    (run,) = document["runs"]
    result = next(r for r in run["results"] if r["ruleId"] == FAULT)
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == f"{project.name}/train.py"
    assert place["region"]["startLine"] > 1
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == FAULT


TESTS = """import pytest

def test_passes(): print("said")

def test_fails(): assert 0, "the value"

@pytest.mark.skip(reason="no GPU")
def test_is_skipped(): pass

@pytest.fixture
def broken(): raise ValueError("row 7")

def test_cannot_begin(broken): pass
"""


@pytest.fixture(scope="module")
def of_pytest(tmp_path_factory: pytest.TempPathFactory) -> ElementTree.Element:
    """What pytest itself writes about a test of every outcome."""
    folder = tmp_path_factory.mktemp("tests-of-a-stranger")
    (folder / "test_all.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    settings = ["-o", "junit_family=xunit1", "-o", "junit_logging=system-out"]
    written = folder / "pytest.xml"
    done = subprocess.run(
        [*command, *settings, f"--junitxml={written}"], cwd=folder, capture_output=True
    )
    assert done.returncode == 1
    return ElementTree.parse(written).getroot()


def _of_every_outcome() -> str:
    known = _report().findings[0]
    suspected = replace(known, fault="loss.double-softmax", status="suspected")
    lived_with = Ignored(replace(known, fault="data.one-class"), "baseline.json")
    return to_junit(
        replace(
            _report(),
            verdict="crashed",
            findings=(known, suspected),
            ignored=(lived_with,),
            looked=("model.causal-leak",),
            could_not_look=(CouldNotLook("model.dead-units", "needs activations\nof a deep step"),),
            notes=("ValueError: \x1b[1mrow 7\x00", "no step was seen"),
            masked={"notes": 2},
        ),
        "packages/nets",
    )


def test_junit_has_the_layout_that_pytest_writes(of_pytest: ElementTree.Element) -> None:
    """Every element stands where pytest puts it, with the attributes that it gives it there; what
    is ours alone is listed, and what is left out too.
    """
    of_ours = ElementTree.fromstring(_of_every_outcome())

    def layout(root: ElementTree.Element) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for parent in root.iter():
            for child in parent:
                found.setdefault((parent.tag, child.tag), set()).update(child.attrib)
        return found

    theirs, ours = layout(of_pytest), layout(of_ours)
    for outcome in ("failure", "error"):
        theirs["testcase", outcome].add("type")  # of the format, where pytest has written it before
    theirs["testsuite", "properties"], theirs["properties", "property"] = set(), {"name", "value"}
    theirs["testsuites", "testsuite"].remove("hostname")
    assert ours == theirs
    for root in (of_pytest, of_ours):
        for suite in root:
            assert float(suite.get("time", "")) >= 0.0
            assert datetime.fromisoformat(suite.get("timestamp", "")).tzinfo is not None
            cases = suite.findall("testcase")
            for kind, plural in (("error", "errors"), ("failure", "failures")):
                assert suite.get(plural) == str(sum(c.find(kind) is not None for c in cases))
            assert suite.get("skipped") == str(sum(c.find("skipped") is not None for c in cases))
            assert suite.get("tests") == str(len(cases))
    first = next(iter(of_ours[0]))
    assert first.tag == "properties", "they come before the cases"


def test_what_reads_junit_finds_place_message_and_text() -> None:
    cases = {
        f"{case.get('classname')}.{case.get('name')}": case
        for case in ElementTree.fromstring(_of_every_outcome()).iter("testcase")
    }
    failed = cases[FAULT]
    assert (failed.get("file"), failed.get("line")) == ("packages/nets/sub dir/train.py", "13")
    failure = failed.find("failure")
    assert failure is not None and failure.get("message") == "Gradients are never cleared"
    assert "fix: Clear them once per step." in (failure.text or "").splitlines()
    assert "suspected" in (cases["loss.double-softmax"].findtext("system-out") or "")
    assert "ignored by baseline.json" in cases["data.one-class"].find("skipped").get("message")  # type: ignore[union-attr, operator]
    assert "of a deep step" in (cases["model.dead-units"].findtext("skipped") or "")
    assert list(cases["model.causal-leak"]) == []
    error = cases["subject.runs"].find("error")
    assert error is not None and error.get("message") == "ValueError: ?[1mrow 7?"
    assert "no step was seen" in (error.text or "")


def test_junit_of_diagnose_counts_what_it_holds(handed_over: Path, project: Path) -> None:
    root = ElementTree.parse(handed_over / "r.xml").getroot()
    failed = {
        f"{case.get('classname')}.{case.get('name')}": case
        for case in root.iter("testcase")
        if case.find("failure") is not None
    }
    assert failed[FAULT].get("file") == f"{project.name}/train.py"
    assert int(failed[FAULT].get("line", "")) > 1
    assert root.get("failures") == str(len(failed))
    assert sum(int(suite.get("tests", "")) for suite in root) == int(root.get("tests", ""))


def test_lines_are_read_by_the_problem_matchers(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert _diagnose("--format", "lines", "run") == 1
    printed = capsys.readouterr().out.splitlines()
    matcher = json.loads((ROOT / ".github" / "sawbones-matcher.json").read_text())
    pattern = matcher["problemMatcher"][0]["pattern"][0]
    found = [re.match(pattern["regexp"], line) for line in printed]
    first = next(match for match in found if match)
    assert first[pattern["file"]] == "train.py" and first[pattern["code"]] == FAULT
    page = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
    assert json.dumps(pattern["regexp"]) in page, "the page shows the same expression"


def test_two_flags_for_one_file_are_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _diagnose("--junit", "same", "--sarif", "same", str(project / "run")) == 2
    assert "--junit and --sarif both name same" in capsys.readouterr().err
