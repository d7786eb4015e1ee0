from __future__ import annotations

import dataclasses
import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from sawbones.report import render_terminal
from sawbones.report.terminal import render_fixes
from sawbones.schema import CouldNotLook, Evidence, Explanation, Finding, Fix, Site, Size


def rendered(report, quiet=False, width=160, terminal=False) -> str:
    out = io.StringIO()
    render_terminal(
        report,
        Console(
            file=out,
            width=width,
            force_terminal=terminal,
            color_system="standard" if terminal else None,
        ),
        quiet,
    )
    return out.getvalue()


def test_the_verdict_comes_first(sick):
    assert rendered(sick).split("\n")[1].rstrip() == "SICK  2 root causes found"


def test_a_finding_says_all_that_matters(sick):
    text = rendered(sick)
    for part in (
        "1 · model.causal-leak · proven",
        "train.py:20 in forward",
        "20 │ x = layer(x)",
        "measured 0.47, expected 0 · steps 0–1, 100",
        "measured nan, expected 2.3 · steps 137–139",
        "on a copy of the model: confirmed in 3.4 s",
        "as it is 0.47 → with the remedy 0",
        "unscale first would decide it; it was not run",
        "Pass a causal mask to every layer.",
        "+     x = layer(x, src_mask=causal_mask(x), is_causal=True)",
    ):
        assert part in text, part


def test_the_summary_groups_the_reasons(sick):
    text = rendered(sick)
    assert "1 suspect: optimizer.lr-too-high (lr-tenth)" in text
    assert "4 checks: no padding was found in the inputs (3)" in text


def test_findings_keep_their_order(sick):
    text = rendered(sick)
    places = [text.index(finding.fault) for finding in sick.findings]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [60, 100, 250])
def test_no_line_is_wider_than_100_columns(sick, width):
    long = dataclasses.replace(
        sick.findings[0],
        title="word " * 60 + "x" * 300,
        where=(Site("/very/long/" + "path/" * 40 + "train.py", 7, "f" * 120, "y" * 400),),
        evidence=(
            Evidence("z" * 300, steps=tuple(range(0, 400, 2)), value=1e300, expected=-1e-300),
        ),
        fix=Fix("w" * 300, replace=("a" * 200, "b" * 200)),
    )
    report = dataclasses.replace(sick, findings=(long, *sick.findings))
    assert max(cell_len(line) for line in rendered(report, width=width).split("\n")) <= min(
        width, 100
    )


def test_healthy_says_what_was_looked_at_and_what_was_not(healthy):
    text = rendered(healthy)
    assert "HEALTHY  No fault found" in text
    assert "4 checks looked over 200 steps" in text
    assert "3 checks: this run has no GradScaler (2)" in text


def test_what_was_not_judged_or_not_explained_says_why(unexplained, inconclusive):
    text = rendered(unexplained)
    assert "UNEXPLAINED  Something is wrong (does-not-learn), and no cause was found" in text
    assert "Notable: the loss jumps at step 40" in text
    assert text.strip().startswith("Symptom: the loss ends at 1.374")
    assert "optimizer: a tenth of the learning rate: nothing changed" in text
    text = rendered(inconclusive)
    assert "INCONCLUSIVE  Too little was seen to judge" in text
    assert "no optimizer step was seen" in text
    quiet = rendered(inconclusive, quiet=True)
    assert quiet == "train.py: inconclusive: no optimizer step was seen\n"


def test_quiet_is_one_line_per_finding_whatever_the_width(sick, healthy, crashed):
    lines = rendered(sick, quiet=True, width=30).splitlines()
    assert lines[0].startswith("train.py:20: model.causal-leak proven The model reads")
    assert len(lines) == 3
    assert rendered(healthy, quiet=True) == ""
    assert rendered(crashed, quiet=True) == "train.py: crashed, no fault found\n"


def test_no_colour_when_piped_and_colour_on_a_terminal(sick):
    assert "\x1b" not in rendered(sick)
    assert "\x1b[" in rendered(sick, terminal=True)


def test_text_of_the_user_is_neither_markup_nor_control(sick):
    nasty = "[bold red]x[/] [/nope] \x1b[2J\x07"
    finding = dataclasses.replace(
        sick.findings[0], title=nasty, where=(Site("train.py", 1, "f", nasty),)
    )
    text = rendered(dataclasses.replace(sick, findings=(finding,)))
    assert text.count("[bold red]x[/] [/nope]") == 2
    assert "\x1b" not in text and "\x07" not in text


def test_a_crash_is_laid_out_as_expected_got_because_try(crashed):
    told = Explanation(
        "10 columns", "12", "hidden is 4 x 12", (Size("hidden", "4 x 12", "line 3"),)
    )
    found = Finding(
        "model.width-mismatch",
        "proven",
        0.9,
        "too wide",
        fix=Fix("nn.Linear(12, 2)"),
        explanation=told,
    )
    lines = rendered(dataclasses.replace(crashed, findings=(found,))).split("\n")
    rows = [line.strip("│ ").split("  ", 1) for line in lines]
    said = {row[0]: row[1].strip(" │") for row in rows if len(row) == 2}
    assert said["expected"] == "10 columns" and said["got"] == "12"
    assert said["because"] == "hidden is 4 x 12" and said["try"] == "nn.Linear(12, 2)"
    assert said["sizes"].split() == ["hidden", "4", "x", "12", "line", "3"]


def test_a_check_without_work_is_no_blind_spot(sick):
    blind = (
        CouldNotLook("loop.backward-twice", "needs crash: the script did not crash. Nothing to do"),
        CouldNotLook("model.causal-leak", "needs deep: no deep step was recorded"),
    )
    text = rendered(dataclasses.replace(sick, could_not_look=blind))
    assert "not needed      1 check does not apply to this script" in text
    assert "could not look  1 check: no deep step was recorded (1)" in text


def test_fixes_are_shown_whole_with_one_line_of_numbers(sick):
    out = io.StringIO()
    render_fixes(sick, Console(file=out, width=100))
    text = out.getvalue()
    assert "--- a/train.py\n+++ b/train.py\n" in text
    assert "+            x = layer(x, src_mask=causal_mask(x), is_causal=True)\n" in text
    assert "verified: applied, run from the same seed; the fault is gone" in text
    assert "loss 0.031 → 2.14 (200 steps)" in " ".join(text.split())
    assert "decay-on-norm-bias" not in text  # suspected
