"""What serves beside what was trained: where they part, golden files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sawbones.cli.main import main
from sawbones.parity import compare
from sawbones.parity.golden import Golden, read_golden

ROWS = np.random.default_rng(0).uniform(0, 255, (40, 3, 4)).astype(np.float32)


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3)).eval()


def _scaled(rows: Any) -> Any:
    return (rows - np.float32(120)) / np.float32(40)


def _of(trained: Any, served: Any, **options: Any) -> Any:
    return compare(trained, served, Golden({"input": ROWS}), **options).report


def test_the_same_model_agrees_and_the_layers_were_looked_at() -> None:
    report = _of(_network, _network)
    assert report.verdict == "healthy"
    assert "5 steps and layers were compared" in report.notes


def test_the_first_layer_that_differs_is_named() -> None:
    other = _network()
    with torch.no_grad():
        other[1].weight.mul_(1.5)
    report = _of(_network, lambda: other)
    assert report.verdict == "sick" and report.findings[0].status == "proven"
    assert report.findings[0].title == "served and trained part from 1 on"


@pytest.mark.parametrize(
    ("prepare", "told"),
    [
        (lambda rows: _scaled(rows[:, ::-1]), "in reverse along axis 1 (as BGR is to RGB)"),
        (lambda rows: _scaled(rows) * np.float32(2), "2 times the trained ones"),
        (lambda rows: np.clip(_scaled(rows), -1, 1), "cut off at -1 and 1"),
    ],
)
def test_a_second_preparation_is_named_with_what_it_does(prepare: Any, told: str) -> None:
    trained = [("prepare", _scaled), ("model", _network())]
    served = [("prepare", prepare), ("model", _network())]
    found = _of(trained, served).findings[0]
    assert found.title == "served and trained part from prepare on"
    assert any(told in e.text for e in found.evidence)
    assert found.where[0].file.endswith("test_parity.py")


def test_a_side_in_training_mode_is_said() -> None:
    def served() -> nn.Module:
        return nn.Sequential(_network(), nn.Dropout(0.5)).train()

    found = _of(lambda: nn.Sequential(_network(), nn.Dropout(0.5)).eval(), served).findings[0]
    assert any("in training mode: served" in e.text for e in found.evidence)


def test_a_batch_of_one_shows_what_depends_on_the_other_rows() -> None:
    def centred(rows: Any) -> Any:
        return rows.reshape(len(rows), -1).sum(1) - rows.sum() / len(rows)

    assert _of(lambda: [centred], lambda: [centred]).verdict == "healthy"
    assert _of(lambda: [centred], lambda: [centred], batch=1).verdict == "sick"


def test_a_loss_of_precision_that_is_meant_can_be_allowed() -> None:
    def half(rows: Any) -> Any:
        with torch.no_grad():
            return _network()(torch.from_numpy(rows)).numpy().astype(np.float16)

    assert _of(_network, lambda: [half]).verdict == "sick"
    assert _of(_network, lambda: [half], tolerance=0.01).verdict == "healthy"


def test_a_side_that_raises_is_a_crash_with_its_own_words() -> None:
    def broken(rows: Any) -> Any:
        raise ValueError("no such column")

    report = _of(_network, lambda: [broken])
    assert report.verdict == "crashed"
    assert report.notes == ("served raised ValueError: no such column",)


SIDES = """
import torch
from torch import nn

def trained():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 3)).eval()

def served():
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 3)).eval()
"""


def _status(*args: str) -> Any:
    with pytest.raises(SystemExit) as ended:
        main(["parity", *args])
    return ended.value.code


def test_golden_files_keep_the_trained_answers_for_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sides.py").write_text(SIDES)
    np.savez("rows.npz", input=ROWS)
    one, two = "sides.py:trained", "sides.py:served"
    assert _status(one, one, "--inputs", "rows.npz", "--write", "golden.npz") == 0
    assert read_golden("golden.npz").answers is not None
    assert _status(one, "--inputs", "golden.npz") == 0
    assert _status(two, "--inputs", "golden.npz", "--json", "report.json") == 1
    report = json.loads(Path("report.json").read_text())
    assert report["findings"][0]["fault"] == "deployment.serving-parity"
    assert _status(two, "--inputs", "rows.npz") == 2
    assert "holds no answers" in capsys.readouterr().err
    assert _status(one, "sides.py:nothing", "--inputs", "rows.npz") == 2
    assert _status(one, two, "--inputs", "missing.npz") == 2
