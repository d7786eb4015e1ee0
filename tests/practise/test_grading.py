"""Points follow the rubric: classes of answers keep their order, and length buys nothing."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sawbones.fixing.source import Source
from sawbones.practise.answers import Answer, NoAnswer, answer
from sawbones.practise.claims import NoClaim, holds, parse, value_of
from sawbones.practise.examining import examine
from sawbones.practise.exercises import Exercise, make
from sawbones.practise.grading import MOST_WORDS, Trials, grade, total
from sawbones.practise.injecting import injectors
from sawbones.practise.measuring import Measured, hurts, shows
from sawbones.practise.progress import page
from sawbones.practise.scripts import healthy
from sawbones.practise.tasks import SENSORS
from sawbones.schema import Ending, Run
from sawbones.store import read_run

EXERCISE = make(5, 2)
(FAULT,) = EXERCISE.faults
LAYER = FAULT.partition(".")[0]
LINE = min(EXERCISE.lines)


def _measured(losses: list[float], log: str) -> Measured:
    steps = {
        "step": np.arange(len(losses), dtype=np.float64),
        "loss": np.asarray(losses, np.float64),
        "grad_norm": np.asarray(losses, np.float64) * 10,
        "lr": np.full(len(losses), 0.9),
    }
    return Measured(Run("train.py", (), "", {}, Ending("finished"), steps=steps), (log,))


BAD = _measured([2.0, 30.0, 8.0, 1.5], "epoch 5: loss 1.4947")
GOOD = _measured([2.0, 1.0, 0.4, 0.1], "epoch 5: loss 0.1084")
REPORT = """# Symptom
It ends at 1.4947.
# Reproduction
python train.py, the same each time.
# Evidence
The loss of step 1 is 30.
# Cause
The learning rate of 0.9.
# Fix
A smaller one.
# Prevention
A test."""
RIGHT = Answer(
    (FAULT,),
    (LINE,),
    "the rate",
    (parse("loss@last > 1"), parse("try lr=0.01 heals")),
    fix="given",
    report=REPORT,
)
RAN = Trials(
    BAD,
    GOOD,
    True,
    heals=True,
    patched_text=EXERCISE.healthy.text,
    test_tells=True,
    outcomes={"lr=0.01": "confirmed", "clip=1": "refuted"},
)
NO_FIX = replace(RAN, heals=None, patched_text=EXERCISE.broken.text, test_tells=None)


def _points(given: Answer, trials: Trials = RAN, hints: int = 0) -> float:
    return total(grade(EXERCISE, given, trials, hints))


def test_a_right_answer_gets_everything_and_every_line_is_explained() -> None:
    lines = grade(EXERCISE, RIGHT, RAN)
    assert total(lines) == 100
    assert sum(line.most for line in lines) == 100
    assert all(line.why for line in lines)


def test_classes_of_answers_keep_their_order() -> None:
    wrong_fix = replace(RAN, heals=False, test_tells=None)
    guess = Answer((FAULT,), (LINE,))
    other = f"{LAYER}.stale-params" if LAYER == "optimizer" else "optimizer.lr-too-low"
    points = [
        _points(RIGHT),
        _points(replace(RIGHT, fix=""), NO_FIX),  # no patch
        _points(replace(RIGHT, lines=(1,)), wrong_fix),  # the cause, another line, no healing
        _points(guess, NO_FIX),  # a lucky guess: no evidence
        _points(Answer(("loss.weighting",), (LINE,)), NO_FIX),  # wrong
    ]
    assert points == sorted(points, reverse=True) and len(set(points)) == len(points)
    assert points[0] - points[3] >= 50
    near = _points(Answer((other,), (LINE,)), NO_FIX)
    assert points[4] < near < points[3]  # the right layer, another fault


@pytest.mark.parametrize(
    ("change", "less"),
    [
        ({"claims": ()}, 30),
        ({"claims": (parse("loss@last > 1"),)}, 14),
        ({"claims": (parse("loss@0 > 1"), parse("try lr=0.01 heals"))}, 10),
        ({"claims": (*RIGHT.claims, parse("grad_norm@1 > 9000"))}, 5),
        ({"claims": (*RIGHT.claims, parse("try clip=1 heals"))}, 5),
        ({"claims": (*RIGHT.claims, parse("try clip=1 does not heal"))}, 0),
        ({"lines": (1,)}, 8),
        ({"report": "", "because": ""}, 15),
        ({"report": REPORT.replace("1.4947", "1.73")}, 2),
        ({"report": REPORT + " more" * MOST_WORDS}, 15),
        ({"report": REPORT + " and so on and so forth" * 20}, 0),
        ({"report": REPORT * 3}, 0),
    ],
)
def test_each_part_costs_what_the_rubric_says(change: dict, less: float) -> None:
    assert _points(replace(RIGHT, **change)) == 100 - less


def test_more_of_the_same_claim_and_longer_text_score_no_higher() -> None:
    many = tuple(parse(f"loss@{step} > 0.01") for step in (0, 1, 2, 3)) * 3
    one = (parse("loss@0 > 0.01"),)
    assert _points(replace(RIGHT, claims=many)) == _points(replace(RIGHT, claims=one))


def test_a_text_stands_for_itself_and_a_missing_file_is_named(tmp_path: Path) -> None:
    named: dict[str, object] = {"fault": FAULT}
    assert answer(tmp_path, named | {"report": REPORT}).report == REPORT
    (tmp_path / "said.md").write_text("Symptom: none.")
    assert answer(tmp_path, named | {"report": "said.md"}).report == "Symptom: none."
    with pytest.raises(NoAnswer, match=r"fix: .*gone\.patch cannot be read: No such file"):
        answer(tmp_path, named | {"fix": "gone.patch"})


def test_hints_an_unneeded_hunk_and_a_command_that_does_not_repeat_cost_points() -> None:
    assert _points(RIGHT, hints=2) == 90
    wordy = EXERCISE.healthy.text.replace("EPOCHS = ", "EPOCHS = 0 + ")
    assert _points(RIGHT, replace(RAN, patched_text=wordy)) == 98
    assert _points(RIGHT, replace(RAN, repeats=False)) == 88


def test_a_run_that_cannot_repeat_is_reproduced_by_two_that_differ() -> None:
    unlike = replace(RAN, repeats=False, why_not="two runs of the command differ in output")
    known = replace(EXERCISE, faults=("loop.nondeterminism",))
    lines = {line.part: line.points for line in grade(known, RIGHT, unlike)}
    assert lines["reproduction"] == 12
    lines = {line.part: line.points for line in grade(EXERCISE, RIGHT, unlike)}
    assert lines["reproduction"] == 0


def test_a_healthy_script_is_to_be_called_healthy() -> None:
    clean = next(made for made in (make(seed, 4) for seed in range(40)) if not made.faults)
    trials = replace(NO_FIX, broken=GOOD, patched_text=clean.healthy.text)
    honest = Answer((), (), claims=(parse("loss@3 < 0.2"), parse("try lr=0.01 heals")))
    made_up = replace(honest, faults=("loop.no-step",), fix="x")
    assert total(grade(clean, honest, trials)) == 85  # no report
    assert total(grade(clean, made_up, trials)) <= 45


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("loss@3 > 1", 1.5),
        ("loss@last > 1", 8.0),
        ("lr@last == 0.9", 0.9),
        ("loss@1..2 == 19", 19.0),
        ("grad_norm@1 >= 300", 300.0),
        ("steps == 4", 4.0),
        ("lr@first == 0.9", 0.9),
        ("loss@99 > 0", None),
        ("eval@last < 1", None),
        ("first_nonfinite == 2", None),
    ],
)
def test_a_claim_is_measured(text: str, value: float | None) -> None:
    claim = parse(text)
    assert value_of(claim, BAD) == (pytest.approx(value) if value is not None else None)
    assert holds(claim, value) == (value is not None)


@pytest.mark.parametrize(
    ("number", "value", "true"),
    [("0.43", 0.4312, True), ("0.43", 0.44, False), ("nan", float("nan"), True), ("16", 16.0, True),
     ("1e-3", 0.00101, True), ("nan", 1.0, False)],
)  # fmt: skip
def test_equal_means_to_the_digits_that_are_given(number: str, value: float, true: bool) -> None:
    assert holds(parse(f"loss@0 == {number}"), value) is true


@pytest.mark.parametrize("text", ["loss", "loss@ > 1", "accuracy > 1", "loss@3 > much", "try lr"])
def test_what_is_no_claim_is_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(NoClaim, match=r"no claim|no number"):
        parse(text)


def test_an_answer_comes_from_its_file_and_flags_win(tmp_path: Path) -> None:
    (tmp_path / "answer.toml").write_text(
        'fault = "loop.no-step"\nline = 12\nclaims = ["crashes"]\nreport = "r.md"\n', "utf-8"
    )
    (tmp_path / "r.md").write_text("the cause", "utf-8")
    read = answer(tmp_path, {"fault": ["none"], "line": None})
    assert read.faults == () and read.lines == (12,) and read.report == "the cause"
    (tmp_path / "answer.toml").unlink()
    with pytest.raises(NoAnswer, match="no fault is named"):
        answer(tmp_path, {})


def test_other_numbers_a_warning_or_a_crash_show_and_noise_does_not() -> None:
    assert shows(BAD, GOOD) and not shows(GOOD, GOOD)
    near = _measured([2.0, 1.0, 0.4, 0.1], "epoch 5: loss 0.1085")
    assert not shows(near, GOOD)
    assert shows(replace(near, log=("UserWarning: x", "epoch 5: loss 0.1084")), GOOD)
    assert shows(Measured(None, ("ValueError: x",)), GOOD)


def test_a_worse_end_hurts_and_a_better_one_does_not() -> None:
    assert hurts(BAD, GOOD) and not hurts(GOOD, GOOD)
    better = _measured([2.0, 1.0, 0.2, 0.05], "epoch 5: loss 0.0500")
    assert shows(better, GOOD) and not hurts(better, GOOD)
    tiny = _measured([2.0, 1.0, 0.001, 0.0002], "epoch 5: loss 0.0002")
    solved = _measured([2.0, 1.0, 0.001, 0.0001], "epoch 5: loss 0.0001")
    assert shows(tiny, solved) and not hurts(tiny, solved)  # both have learned it
    assert hurts(replace(GOOD, log=("epoch 5: loss nan",)), GOOD)
    assert hurts(Measured(None, ("ValueError: x",)), GOOD)


def test_the_history_names_the_weakest_part() -> None:
    row = {"when": 0.0, "level": 2, "layers": ["loss"], "points": 60, "minutes": 9, "lines": {}}
    lines = {"cause": 15, "line": 8, "reproduction": 12, "measured": 6, "isolation": 0}
    text = page([row | {"lines": lines}])
    assert "1 graded answer," in text and "weakest: isolation, 0% of its points" in text
    assert "No graded answer yet" in page([])


def test_a_claim_about_the_label_probe_is_measured_and_separates(tmp_path: Path) -> None:
    """Labels put beside other rows: the inputs tell nothing of them, in the healthy script all."""
    source = Source.of(healthy(random.Random(0), SENSORS).text.encode(), "train.py")
    (broken,) = injectors()["data.labels-misaligned"].into(source)[:1]
    exercise = Exercise(0, 2, ("data.labels-misaligned",), source, broken)
    (tmp_path / "train.py").write_bytes(broken.raw)
    given = Answer(exercise.faults, claims=(parse("label_probe < 0.1"),), command="true")
    trials = examine(exercise, given, tmp_path, lambda text: None)
    lines = {line.part: line for line in grade(exercise, given, trials)}
    assert lines["measured"].points == 6, lines["measured"].why
    assert lines["differs from a healthy run"].points == 10
    told = value_of(given.claims[0], trials.healthy)
    assert told is not None and told > 0.5


TURNED = """\
import torch

torch.manual_seed(0)
x, y = torch.randn(60, 4), torch.arange(60) % 3
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(12):
    for part in (slice(0, 30), slice(30, 60)):
        loss = torch.nn.functional.cross_entropy(model(x[part]), y[part])
        (-loss / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
print(loss.item())
"""


def test_one_odd_batch_at_the_end_does_not_decide_how_a_loss_ends() -> None:
    odd = _measured([2.0] * 10 + [0.1] * 9 + [1.6], "loss 0.1")
    assert value_of(parse("loss@last < 0.3"), odd) == pytest.approx(0.1)
    ended = _measured([2.0] * 19 + [float("nan")], "loss nan")
    assert holds(parse("loss@last == nan"), value_of(parse("loss@last == nan"), ended))


def test_a_run_that_never_steps_still_has_losses(tmp_path: Path) -> None:
    text = TURNED.replace("(-loss / 2)", "loss").replace("    optimizer.step()\n", "")
    (tmp_path / "train.py").write_text(text)
    call = [sys.executable, "-m", "sawbones", "run", "--quiet", "--out", "rec", "train.py"]
    done = subprocess.run(call, cwd=tmp_path, check=True, capture_output=True, text=True)
    run = read_run(tmp_path / "rec")
    assert run.num_steps == 0
    last = value_of(parse("loss@23 > 0"), Measured(run, ()))
    assert last == pytest.approx(float(done.stdout.split()[-1]))


def test_the_loss_of_a_claim_is_the_one_that_the_script_computes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TURNED)
    call = [sys.executable, "-m", "sawbones", "run", "--quiet", "--out", "rec", "train.py"]
    done = subprocess.run(call, cwd=tmp_path, check=True, capture_output=True, text=True)
    printed = float(done.stdout.split()[-1])
    seen = value_of(parse("loss@last > 0"), Measured(read_run(tmp_path / "rec"), ()))
    assert seen == pytest.approx(printed, rel=0.2)  # the mean of the two halves
