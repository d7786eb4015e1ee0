"""Exercises follow from their seed, run, show something, and name nothing."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from sawbones.diagnosis import diagnose_script
from sawbones.fixing.editing import after, apply
from sawbones.fixing.source import Source
from sawbones.practise import answers
from sawbones.practise.colleague import report
from sawbones.practise.exercises import LEVELS, Exercise, NoExercise, into_own, make
from sawbones.practise.guiding import hint
from sawbones.practise.injecting import injectors
from sawbones.practise.measuring import Measured
from sawbones.practise.patching import DoesNotApply, patched
from sawbones.practise.places import models
from sawbones.practise.scripts import healthy
from sawbones.practise.starting import tried
from sawbones.practise.tasks import BLOCKS, TASKS
from sawbones.schema import faults

SEEDS = range(40)


def _run(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Output, and the error that ended it; in this process, since torch is loaded here already."""
    monkeypatch.chdir(folder)
    said = io.StringIO()
    with torch.random.fork_rng(), warnings.catch_warnings(), contextlib.redirect_stdout(said):
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "train.py", "exec"), {"__name__": "__main__"})
        except Exception as error:
            return said.getvalue(), type(error).__name__
    return said.getvalue(), ""


def _short(text: str) -> str:
    return text.replace("EPOCHS = ", "EPOCHS = 1  # of ")


def test_forty_faults_and_more_can_be_put_into_a_healthy_script() -> None:
    assert len(injectors()) >= 40
    assert all(one.level in (1, 2, 3, 4) for one in injectors().values())


def test_every_injector_finds_a_place() -> None:
    scripts = [
        Source.of(healthy(random.Random(seed)).text.encode(), "train.py") for seed in range(60)
    ]
    for fault, injector in injectors().items():
        assert any(injector.into(source) for source in scripts), f"{fault} finds no place"


def test_an_exercise_follows_from_its_seed_and_hundreds_are_distinct() -> None:
    made = [make(seed, level).broken.text for level in LEVELS for seed in SEEDS]
    assert made == [make(seed, level).broken.text for level in LEVELS for seed in SEEDS]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_has_the_number_of_faults_that_it_promises(level: int) -> None:
    counts = {len(make(seed, level).faults) for seed in range(30)}
    assert counts == {1: {1}, 2: {1}, 3: {1}, 4: {0, 2}, 5: {0, 3}}[level]


def test_a_layer_is_kept_to_and_one_without_exercises_is_refused() -> None:
    assert all(make(seed, 3, "optimizer").faults[0].startswith("optimizer.") for seed in range(8))
    with pytest.raises(NoExercise, match="Layers of this level"):
        make(0, 1, "deployment")


def test_nothing_in_the_folder_names_the_answer() -> None:
    short = {one.partition(".")[2] for one in faults()}
    known = {*faults(), *(name for name in short if "-" in name)}  # `schedule` is a word of its own
    words = {"broken", "fault", "inject", "sawbones", "bug", "todo", "fixme", "practise"}
    for level in LEVELS:
        for seed in SEEDS:
            exercise = make(seed, level)
            text = exercise.broken.text.lower()
            assert not [name for name in known if name in text], (seed, level)
            assert not [word for word in words if word in text], (seed, level)
            log = Measured(None, ("epoch 0: loss 1.2, val loss 1.3, accuracy 0.4",))
            beside = report(exercise, log, log).lower()
            assert not [name for name in known if name in beside], (seed, level)
    assert not [one for one in faults() if one in answers.TEMPLATE]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_task_runs_in_both_forms(
    task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = {}
    for seed in range(12):
        text = healthy(random.Random(seed), task).text
        forms.setdefault("def main" in text, text)
    assert len(forms) == 2
    for text in forms.values():
        said, error = _run(_short(text), tmp_path, monkeypatch)
        assert not error, text
        (row,) = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
        assert row["loss"] > 0 and said
        assert (tmp_path / "model.pt").stat().st_size > 500


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_task_validates_on_rows_that_it_trains_on(task) -> None:
    """Otherwise the healthy script has a fault that nobody put there, which hides another one."""
    numbers = {name: several[0] for name, several in task.numbers.items()} | {"data_seed": 1}
    text = re.sub(r"@(\w+)", lambda found: str(numbers[found[1]]), task.data.replace("$", ""))
    names: dict[str, Any] = {"torch": torch, "TensorDataset": torch.utils.data.TensorDataset}
    exec(text, names)
    trained = {row[0].numpy().tobytes() for row in names["train_set"]}
    again = [row for row in names["val_set"] if row[0].numpy().tobytes() in trained]
    assert len(again) <= len(names["val_set"]) // 50


def test_a_decay_is_chosen_only_where_nothing_normalises() -> None:
    """On gains it is a fault of its own, which no exercise declares."""
    texts = [healthy(random.Random(seed)).text for seed in range(200)]
    decayed = [text for text in texts if "weight_decay" in text]
    assert len(decayed) > 3
    assert not [text for text in decayed if "Norm" in text or "TransformerEncoderLayer" in text]


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_check_has_anything_to_say_of_a_healthy_script(task, tmp_path: Path) -> None:
    text = healthy(random.Random(task.name), task).text
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    made = diagnose_script("train.py", (), working_folder=tmp_path, seconds=200, experiments=False)
    named = [f.fault for f in made.report.findings if f.status != "suspected"]
    assert (made.report.verdict, named) == ("healthy", [])


@pytest.mark.parametrize("seed", range(10))
def test_an_exercise_of_the_first_level_ends_in_an_error(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exercise = make(seed, 1)
    assert _run(_short(exercise.healthy.text), tmp_path, monkeypatch)[1] == ""
    assert _run(_short(exercise.broken.text), tmp_path, monkeypatch)[1]


@pytest.mark.parametrize("seed", range(6))
def test_an_exercise_of_the_third_level_runs_to_its_end_and_prints_other_numbers(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exercise = make(seed, 3)
    good, error = _run(exercise.healthy.text, tmp_path, monkeypatch)
    assert not error
    bad, error = _run(exercise.broken.text, tmp_path, monkeypatch)
    # One whose numbers are the same is not given out: `sawbones practise` takes the next seed.
    assert not error and (bad != good or exercise.faults[0] in QUIET)


@pytest.mark.parametrize(
    ("fault", "never"),
    [
        # What takes the size of a row, of a loss or of a gradient away again.
        ("loop.loss-spike", ("clip_grad", "Norm", "TransformerEncoder", "CrossEntropy", "BCE")),
        ("loop.accumulation-unscaled", ("clip_grad", "Adam")),
        # Behind a frozen table, gain or projection the rest learns nearly as well.
        ("model.frozen-params", (".embed.requires", ".norm.requires", ".stem.requires")),
        # A head that is trained alone may be what somebody wanted.
        (
            "optimizer.missing-params",
            tuple(f"({name}.head." for name in ("model", "net", "clf", "estimator")),
        ),
        ("model.detached-graph", ("triu(1).detach()", "self.body(self.embed(x)).detach()")),
    ],
)
def test_a_fault_is_not_put_where_it_does_no_harm(fault: str, never: tuple[str, ...]) -> None:
    made = []
    for seed in range(120):
        source = Source.of(healthy(random.Random(seed)).text.encode(), "train.py")
        made += [one.text for one in injectors()[fault].into(source)]
    assert len(made) >= 3
    assert not [(text, word) for text in made for word in never if word in text]


def test_samples_come_in_another_order_though_a_seed_is_set(tmp_path, monkeypatch) -> None:
    source = Source.of(healthy(random.Random(0), BLOCKS).text.encode(), "train.py")
    (broken,) = injectors()["loop.nondeterminism"].into(source)
    assert "torch.manual_seed(" in broken.text
    first, again = (_run(_short(broken.text), tmp_path, monkeypatch) for _ in range(2))
    assert first != again and not first[1] and not again[1]
    without = source.text.replace("torch.manual_seed(", "str(").encode()
    without = without.replace(b".manual_seed(", b".set_offset(")
    assert not injectors()["loop.nondeterminism"].into(Source.of(without, "train.py"))


def _blocks_with(text: str) -> Exercise:
    """The residual network of the first seed that draws it, with a line behind its model."""
    source = Source.of(healthy(random.Random(0), BLOCKS).text.encode(), "train.py")
    (made,) = models(source)
    name = source.text_of(made.targets[0])
    broken = apply(source, (after(source, made, text.format(name)),))
    return Exercise(0, 3, ("model.frozen-params",), source, broken)


def test_an_exercise_is_given_out_only_where_its_fault_hurts() -> None:
    assert tried(_blocks_with("{}.norm.requires_grad_(False)")) is None
    seen = tried(_blocks_with("[p.requires_grad_(False) for p in {}.parameters()][0]"))
    assert seen is not None and seen[0].crashed and not seen[1].crashed


QUIET = {
    "loop.accumulation-remainder",
    "loop.accumulation-unscaled",
    "loop.clip-after-step",
    "loop.snapshot-not-copied",
}


def test_a_fault_is_put_into_a_script_of_the_users() -> None:
    own = Path(__file__).resolve().parents[2] / "examples" / "translate.py"
    source = Source.read(own, own.name)
    found = into_own(source, 0, 2, None)
    assert found and all(len(one.faults) == 1 and one.lines for one in found)
    assert all(one.healthy.text == own.read_text(encoding="utf-8") for one in found)


def test_every_hint_names_this_scripts_own_names_and_lines() -> None:
    for seed, level in ((1, 2), (2, 3), (3, 4), (11, 3)):
        exercise = make(seed, level)
        lines = exercise.broken.text.splitlines()
        first = hint(exercise, 1)
        named = re.findall(r"`(\w+)`, line (\d+)", first)
        assert len(named) >= 3 and all(name in lines[int(line) - 1] for name, line in named), first
        assert re.search(r"lines \d+ to \d+", hint(exercise, 2))
        last = hint(exercise, 3)
        assert re.match(r"Lines? \d", last) and str(min(exercise.lines)) in last


def test_the_fix_of_an_exercise_is_its_own_answer() -> None:
    for seed in range(20):
        exercise = make(seed, 3)
        assert patched(exercise.broken, exercise.fix).text == exercise.healthy.text
        assert patched(exercise.broken, exercise.healthy.text).text == exercise.healthy.text
    with pytest.raises(DoesNotApply, match="is not there"):
        patched(exercise.healthy, "@@ -3,1 +3,1 @@\n-nothing like it\n+else\n")
