from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sawbones.report import unified_diff, with_patches
from sawbones.schema import Fix, Site


def applied(patch: str | None, source: str, folder: Path) -> str:
    """What git makes of it: the patch must apply, not merely look right."""
    assert patch is not None
    (folder / "train.py").write_bytes(source.encode())
    subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"],
        input=patch.encode(),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return (folder / "train.py").read_bytes().decode()


def change(source: str, line: int, **fix) -> str | None:
    return unified_diff(Fix("change it", **fix), Site("train.py", line), source)


LOOP = "for x, y in data:\n    loss = f(x, y)\n    loss.backward()\n    opt.step()\n"


def test_a_replacement_changes_one_line(tmp_path):
    patch = change(LOOP, 2, replace=("f(x, y)", "f(x, y).mean()"))
    assert applied(patch, LOOP, tmp_path) == LOOP.replace("f(x, y)", "f(x, y).mean()")


def test_an_insertion_takes_the_indentation_of_its_neighbour(tmp_path):
    patch = change(LOOP, 3, insert_before="opt.zero_grad()")
    assert applied(patch, LOOP, tmp_path) == LOOP.replace(
        "    loss.b", "    opt.zero_grad()\n    loss.b"
    )


def test_after_a_block_header_means_inside_it(tmp_path):
    patch = change(LOOP, 1, insert_after="opt.zero_grad()")
    assert applied(patch, LOOP, tmp_path).splitlines()[1] == "    opt.zero_grad()"


def test_a_call_over_several_lines_is_changed_and_surrounded_as_one(tmp_path):
    source = "loss = f(\n    x,\n    reduction='sum',\n)\nloss.backward()\n"
    patch = change(
        source,
        1,
        replace=("'sum'", "'mean'"),
        insert_before="# before",
        insert_after="check(loss)\ncheck(x)",
    )
    expected = (
        "# before\nloss = f(\n    x,\n    "
        "reduction='mean',\n)\ncheck(loss)\ncheck(x)\nloss.backward()\n"
    )
    assert applied(patch, source, tmp_path) == expected


def test_a_file_without_a_last_newline_still_applies(tmp_path):
    source = LOOP.rstrip("\n")
    patch = change(source, 4, insert_after="schedule.step()")
    assert applied(patch, source, tmp_path) == LOOP + "    schedule.step()\n"
    patch = change(source, 4, replace=("opt", "sgd"))
    assert applied(patch, source, tmp_path) == source.replace("opt", "sgd")


def test_windows_line_ends_stay(tmp_path):
    source = LOOP.replace("\n", "\r\n")
    patch = change(source, 3, insert_before="opt.zero_grad()")
    assert applied(patch, source, tmp_path) == source.replace(
        "    loss.b", "    opt.zero_grad()\r\n    loss.b"
    )


def test_nothing_goes_between_if_and_else(tmp_path):
    source = "if a:\n    b()\nelif c:\n    d()\n"
    patch = change(source, 3, insert_before="e()")
    assert applied(patch, source, tmp_path) == "e()\n" + source


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        (2, {"replace": ("not there", "x")}),
        (99, {"insert_before": "x"}),
        (0, {"insert_before": "x"}),
        (2, {"replace": ("f(x, y)", "f(x, y")}),
        (2, {}),
        (2, {"replace": ("f(x, y)", "f(x, y)")}),
    ],
    ids=[
        "text absent",
        "past the end",
        "no line",
        "breaks the syntax",
        "no change named",
        "no difference",
    ],
)
def test_no_patch_rather_than_a_wrong_one(line, fix):
    assert change(LOOP, line, **fix) is None


def test_a_patch_of_the_check_is_kept():
    assert change(LOOP, 1, patch="given") == "given"


def test_a_source_without_valid_syntax_is_patched_by_line(tmp_path):
    source = "print 'old python'\nopt.step()\n"
    assert (
        applied(change(source, 2, insert_before="clip()"), source, tmp_path)
        == "print 'old python'\nclip()\nopt.step()\n"
    )


def test_reports_get_patches_where_the_source_is_known(sick, sources):
    patched = with_patches(sick, {"/home/me/train.py": sources["train.py"]})
    assert "+        scaler.unscale_(optimizer)\n" in patched.findings[1].fix.patch
    assert patched.findings[2].fix.patch is None
    assert with_patches(sick, {}).findings[1].fix.patch is None


def test_two_files_of_one_name_are_not_guessed_between(sick, sources):
    both = {"/a/train.py": sources["train.py"], "/b/train.py": "x = 1\n"}
    assert with_patches(sick, both).findings[1].fix.patch is None
