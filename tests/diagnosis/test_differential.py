"""Where a symptom has no known cause, one change at a time is tried: what heals names the cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sawbones import symptoms
from sawbones.diagnosis.differential import conclusion, seek, standing
from sawbones.diagnosis.rivals import BATTERIES
from sawbones.observe.options import Options
from sawbones.schema import Symptom, fault
from sawbones.schema.one_off import Difference, TwinRun
from sawbones.trials.bench import Bench, Patient
from sawbones.trials.menu import parse

TEN_TIMES = next(r for r in BATTERIES["does-not-learn"] if r.asked == "lr=10")
SLOW = """
import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x @ torch.randn(8, 3)).argmax(1)
net = nn.Linear(8, 3)
opt = torch.optim.SGD(net.parameters(), lr=2e-4)
for _ in range(2):
    for i in range(0, 512, 16):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x[i:i+16]), y[i:i+16]).backward()
        opt.step()
"""


def test_every_change_is_on_the_menu_and_every_cause_in_the_taxonomy() -> None:
    known = {watched.symptom for watched in symptoms.all_symptoms() if watched.cls == "ill"}
    assert set(BATTERIES) <= known
    for rivals in BATTERIES.values():
        for rival in rivals:
            assert parse(rival.asked)
            assert not rival.is_named or fault(rival.fault)


def test_only_an_ill_symptom_without_a_cause_is_sought_for() -> None:
    ill = Symptom("does-not-learn", "ill", "the loss does not fall")
    explained = Symptom("does-not-learn", "ill", "the same", explained_by="loop.no-step")
    notable = Symptom("spikes", "notable", "three spikes")
    assert standing([notable, explained]) is None
    assert standing([notable, ill]) is ill


def test_the_change_that_heals_names_the_cause_and_the_others_clear_their_layer(
    tmp_path: Path,
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    said: list[str] = []
    with Bench(Patient("slow.py", (), tmp_path), 240) as bench:
        run = bench.execute(Options(deep_steps=(0, 5)))
        ill = Symptom("does-not-learn", "ill", "the loss does not fall", steps=(0, 63))
        outcome = seek(bench, run, ill, said.append)
    (found,) = outcome.findings
    assert (found.fault, found.status) == ("optimizer.lr-too-low", "likely")
    assert found.verdict is not None and found.verdict.with_remedy < found.verdict.baseline
    assert any("it explains: the loss does not fall" in e.text for e in found.evidence)
    assert "lr=0.1" in {cleared.by for cleared in outcome.cleared}
    assert said[0].startswith("does-not-learn has no known cause: at most 10 re-runs, about ")


@pytest.mark.parametrize(("repeats", "named"), [(True, ["optimizer.lr-too-low"]), (False, [])])
def test_what_heals_without_the_change_as_well_names_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeats: bool, named: list[str]
) -> None:
    """The run that was watched had bad luck: each later one learns, whatever is changed."""
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    monkeypatch.setitem(BATTERIES, "diverges", (TEN_TIMES,))
    differs = None if repeats else Difference("batch_order", 0)
    with Bench(Patient("slow.py", (), tmp_path), 240) as bench:
        unlucky = bench.execute(Options(deep_steps=(0, 5)))
        unlucky = replace(unlucky, twin_run=TwinRun(25, (), None, differs))
        script.write_text(SLOW.replace("2e-4", "2e-2"))
        ill = Symptom("diverges", "ill", "the loss grows", steps=(0, 63))
        outcome = seek(bench, unlucky, ill, print)
    assert [found.fault for found in outcome.findings] == named
    assert any("without the remedy gains as much" in note for note in outcome.notes) is not repeats


def test_the_classic_tests_lead_to_the_layers_that_an_engineer_would_name() -> None:
    assert "the model, the loss or the optimizer" in conclusion(False, None, None)
    assert "the model, the loss or the optimizer" in conclusion(True, True, False)
    assert "the data (labels, order" in conclusion(True, False, True)
    assert "the data or the pipeline" in conclusion(True, True, True)
    assert "too small" in conclusion(True, True, None)
    assert conclusion(None, None, None) == ""
