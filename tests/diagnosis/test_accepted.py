"""Findings that the user lives with: pyproject.toml, comments, baselines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sawbones.diagnosis.accepted import (
    Accepted,
    Sorted,
    accepted_by,
    comments_in,
    read_baseline,
    sort,
    write_baseline,
)
from sawbones.schema import Ending, Finding, Run, Site
from sawbones.schema.errors import SawbonesError

SOURCE = """\
text = "# sawbones: ignore[loop.no-zero-grad]"
loss.backward(
    retain_graph=True,  # sawbones: ignore[loop.no-zero-grad, loss.double-softmax]
)
optimizer.step()
"""
RUN = Run("train.py", (), "", {}, Ending("finished"))


def found(line: int, fault: str = "loop.no-zero-grad", code: str = "loss.backward(") -> Finding:
    return Finding(fault, "proven", 0.9, "left over", (Site("train.py", line, "", code),))


def sorted_in(folder: Path, *findings: Finding, source: str = SOURCE, **more: object) -> Sorted:
    (folder / "train.py").write_text(source)
    return sort(findings, findings, RUN, folder, Accepted(), **more)  # type: ignore[arg-type]


def test_a_comment_covers_the_statement_it_stands_in_and_a_string_is_no_comment():
    (comment,) = comments_in(SOURCE, "train.py")
    assert (comment.line, comment.lines) == (3, range(2, 5))
    assert comment.faults == ("loop.no-zero-grad", "loss.double-softmax")


def test_a_comment_on_a_line_of_its_own_belongs_to_the_statement_below():
    source = "# sawbones: ignore[loop.no-zero-grad]\nloss.backward()\n"
    (comment,) = comments_in(source, "train.py")
    assert comment.covers("loop.no-zero-grad", Site("train.py", 2))


@pytest.mark.parametrize("source", ["def f(:\n  (", "", "x = (1,  # sawbones: ignore[a.b]"])
def test_a_file_that_python_cannot_read_has_no_comments(source):
    assert comments_in(source, "train.py") == []


def test_a_finding_on_that_statement_is_ignored_and_another_is_not(tmp_path):
    both = sorted_in(tmp_path, found(2), found(5, "optimizer.lr-too-high"))
    assert [item.finding.fault for item in both.ignored] == ["loop.no-zero-grad"]
    assert both.ignored[0].by == "the comment at train.py:3"
    assert [f.fault for f in both.findings] == ["optimizer.lr-too-high"]


def test_the_same_fault_at_another_line_still_counts(tmp_path):
    (tmp_path / "train.py").write_text(SOURCE)
    merged = Finding("loop.no-zero-grad", "proven", 0.9, "", found(2).where + found(5).where)
    said = sort([merged], [found(2), found(5)], RUN, tmp_path, Accepted())
    assert not said.ignored
    assert [site.line for site in said.findings[0].where] == [5]


def test_unused_comments_are_one_line_and_only_of_faults_that_were_looked_for(tmp_path):
    assert sorted_in(tmp_path).notes == ()
    seen = sorted_in(tmp_path, looked=("loop.no-zero-grad", "loss.double-softmax"))
    assert seen.notes == (
        "unused ignore comment (2): train.py:3 [loop.no-zero-grad], train.py:3 [loss.double-softmax]",
    )


@pytest.mark.parametrize(
    ("comment", "said"),
    [("ignore", "name the fault"), ("ignore[loss.no-such]", "no fault 'loss.no-such' to ignore")],
)
def test_a_comment_that_says_nothing_is_reported(tmp_path, comment, said):
    seen = sorted_in(tmp_path, source=f"step()  # sawbones: {comment}\n")
    assert said in seen.notes[0]


def test_the_nearest_pyproject_above_the_script_decides(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.sawbones]\nignore = ["loss.*"]\n')
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.sawbones]\nignore = ["loop.*"]\n')
    accepted = accepted_by(inner)
    assert accepted.patterns == ("loop.*",)
    kept = sort([found(2)], [], RUN, tmp_path, accepted)
    assert kept.ignored[0].by == f"ignore in {tmp_path / 'a' / 'pyproject.toml'}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('ignore = "loop.no-zero-grad"', "a list of fault ids was expected"),
        ('ignore = ["loop.no-zerograd"]', "loop.no-zero-grad"),
        ("ignore = [", "cannot be read"),
    ],
)
def test_a_mistake_in_pyproject_names_the_file_and_the_remedy(tmp_path, text, said):
    (tmp_path / "pyproject.toml").write_text(f"[tool.sawbones]\n{text}\n")
    with pytest.raises(SawbonesError, match=said) as error:
        accepted_by(tmp_path)
    assert str(tmp_path / "pyproject.toml") in str(error.value)


def test_a_baseline_survives_moved_lines_and_not_another_line(tmp_path):
    file = tmp_path / "baseline.json"
    assert write_baseline(file, sort([found(2)], [], RUN, tmp_path, None)) == 1
    assert json.loads(file.read_text())["findings"][0]["code"] == "loss.backward("
    accepted = Accepted(baseline=read_baseline(str(file)))
    moved = sort([found(40, code="  loss.backward(")], [], RUN, tmp_path, accepted)
    assert moved.ignored[0].by == f"the baseline {file}"
    other = sort([found(2, code="total.backward()")], [], RUN, tmp_path, accepted)
    assert not other.ignored
    assert other.notes == (
        f"entry of {file} not found any more (1): loop.no-zero-grad at train.py",
    )


def test_a_baseline_that_is_not_there_says_how_to_write_it(tmp_path):
    with pytest.raises(SawbonesError, match="--write-baseline"):
        read_baseline(str(tmp_path / "none.json"))
    (tmp_path / "half.json").write_text('{"baseline": 1')
    with pytest.raises(SawbonesError, match="is no baseline"):
        read_baseline(str(tmp_path / "half.json"))
