"""What people type, and the page they get."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from sawbones.cli.main import main
from sawbones.lookup import NothingFound, look_up, search
from sawbones.lookup.plan import plan, trials_of
from sawbones.lookup.search import matching_symptoms
from sawbones.lookup.symptom_page import causes, seen
from sawbones.schema import Ending, Run, Symptom, faults
from sawbones.schema.errors import SawbonesError
from sawbones.symptoms import all_symptoms
from sawbones.trials.menu import parse


@pytest.mark.parametrize(
    ("typed", "symptoms"),
    [
        ("nan", ["non-finite"]),
        ("Loss is NaN", ["non-finite"]),
        ("loss does not fall", ["does-not-learn"]),
        ("my loss doesn't go down at all", ["does-not-learn"]),
        ("overfits", ["overfits"]),
        ("overfitting", ["overfits"]),
        ("slow", ["learns-slowly", "slows-down", "waits-for-data"]),
        ("CUDA out of memory", ["out-of-memory"]),
        ("saw-tooth", ["saw-tooth"]),
        ("the kernel of the convolution", []),
    ],
)
def test_a_symptom_is_found_by_what_people_call_it(typed: str, symptoms: list[str]) -> None:
    assert [watched.symptom for watched in matching_symptoms(typed)] == symptoms


@pytest.mark.parametrize("watched", all_symptoms(), ids=lambda w: w.symptom)
def test_every_name_of_a_symptom_leads_to_its_page(watched) -> None:
    for name in (watched.symptom, *watched.called):
        assert f"# {watched.symptom}\n" in look_up(name), name
    page = look_up(watched.symptom)
    for heading in ("What it may mean", "First commands", "Causes", "All of it at once"):
        assert f"\n## {heading}" in page
    for asked in re.findall(r"`sawbones try (\S+) train\.py", page):
        parse(asked)  # raises where there is no such trial


def test_causes_are_faults_in_the_order_of_how_often_they_were_seen() -> None:
    for symptom, found in seen().items():
        assert set(found) <= set(faults()), symptom
    watched = next(w for w in all_symptoms() if w.symptom == "non-finite")
    counts = [count for _, count in causes(watched)]
    assert counts == sorted(counts, reverse=True)
    assert "optimizer.lr-too-high" in dict(causes(watched))  # only a trial names it


def test_a_search_ranks_the_page_about_it_first() -> None:
    assert search("dropout in evaluation")[0].name == "evaluation.eval-mode"
    assert search("find_unused_parameters")[0].name == "loop.unused-parameters"
    assert search("group norm small batches")[0].name == "model.batchnorm-small-batch"


def test_what_nobody_speaks_of_and_an_unknown_id_are_refused(capsys) -> None:
    with pytest.raises(NothingFound, match="no page speaks of 'xyzzy'"):
        look_up("xyzzy")
    with pytest.raises(SawbonesError, match=r"Nearest: loop\.no-step"):
        look_up("loop.no-stp")
    with pytest.raises(SystemExit) as end:
        main(["explain", "loss", "does", "not", "fall"])
    assert end.value.code == 0 and "overfit-one-batch" in capsys.readouterr().out


def test_a_plan_names_the_users_file_and_only_what_can_be_run(tmp_path, capsys) -> None:
    script = tmp_path / "my train.py"
    script.write_text("print(1)", encoding="utf-8")
    with pytest.raises(SystemExit) as end:
        main(["diagnose", "--plan", str(script), "--epochs", "3"])
    text = capsys.readouterr().out
    assert end.value.code == 0
    assert f"sawbones fix '{script}' --epochs 3" in text
    for box in ("5 minutes", "15 minutes", "60 minutes"):
        assert f"## {box}" in text
    for asked in re.findall(r"`sawbones try (\S+) ", text):
        assert parse(asked)


def test_a_plan_of_a_script_says_what_its_last_recording_cleared(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "mine.py"
    script.write_text(
        "import torch\nmodel = torch.nn.Linear(3, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor _ in range(5):\n"
        "    optimizer.zero_grad()\n    model(torch.ones(2, 3)).mean().backward()\n"
        "    optimizer.step()\n"
    )
    subprocess.run(
        [sys.executable, "-m", "sawbones", "run", "--quiet", "mine.py"],
        check=True,
        capture_output=True,
    )

    def planned() -> str:
        with pytest.raises(SystemExit) as end:
            main(["diagnose", "--plan", "mine.py"])
        assert end.value.code == 0
        return str(capsys.readouterr().out)

    text = planned()
    assert "## Seen in the recording .sawbones/mine-" in text
    assert re.search(r"- loop: \d+ checks found nothing", text)
    later = time.time() + 60  # changed since: the recording is of another script
    os.utime(script, (later, later))
    assert "Seen in the recording" not in planned()


def test_a_plan_of_a_recording_says_what_is_ill_and_what_was_looked_at() -> None:
    died = Ending("exception", exception="ValueError", message="no such row")
    text = plan("train.py", (), Run("train.py", (), "", {}, died))
    assert "crashes (ill): the script crashed before the first step: ValueError" in text
    assert "Looked at, nothing found:" in text


def test_the_trials_of_a_plan_are_those_that_separate_the_causes_of_the_symptom() -> None:
    nan = Symptom("non-finite", "ill", "3 of 30 losses are NaN", None, None, (27,))
    (rows,) = trials_of("train.py", [nan])
    assert "`sawbones try no-amp train.py` heals: loop.amp-no-scaler" in rows
    assert trials_of("train.py", []) != [rows]
