"""A denoiser whose target is noise that its input does not hold; and those that come close to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash_runs import died

from sawbones.evidence import NothingToJudge
from sawbones.faults.data.labels_misaligned.check import check
from sawbones.faults.evaluation.preprocessing_mismatch.check import check as check_inputs
from sawbones.schema import Finding, Run

SCRIPT = """
import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(3)
waves = torch.sin(torch.rand(400, 1) * 9 + torch.linspace(0, 6, 12))

def corrupt(wave, level, hiss=None):
    if hiss is None:
        hiss = torch.empty_like(wave).normal_()
    return torch.lerp(wave, hiss, level)

class Cleaner(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(13, 64), nn.Tanh(), nn.Linear(64, 12))

    def forward(self, wave, level):
        return self.body(torch.cat([wave, level], 1))

net = Cleaner()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
for turn in range(90):
    wave = waves[torch.randperm(400)[:100]]
    level = torch.rand(100, 1)
    hiss = torch.randn(100, 12)
    {step}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if turn % 30 == 29:
        net.eval()
        with torch.no_grad():
            wave = torch.randn(50, 12)
            for number in range(12):
                wave = wave - {pace} * net(wave, torch.full((50, 1), 1 - number / 12))
        net.train()
"""
OWN = """
    noisy = corrupt(wave, level)
    loss = functional.l1_loss(net(noisy, level), hiss)
"""
INLINE = """
    loss = functional.mse_loss(net((1 - level) * wave + level * torch.randn(100, 12), level), hiss)
"""
ONCE = "loss = functional.mse_loss(net(corrupt(wave, level, hiss), level), hiss)"
SCORE = "loss = ((net(corrupt(wave, level, hiss), level) + hiss) ** 2).mean()"
ROW_BY_ROW = """
    rows = [corrupt(*each) for each in zip(wave, level, hiss)]
    loss = functional.mse_loss(net(torch.stack(rows), level), hiss)
"""
PARTS = """
    noisy = wave.clone()
    noisy[:, :12].lerp_(hiss, level)
    noisy = noisy + 0.01 * torch.randn(100, 12)
    loss = functional.mse_loss(net(noisy, level), hiss)
"""
CLEAN = "loss = functional.mse_loss(net(corrupt(wave, level), level), wave)"
TWO_NOISES = "loss = functional.mse_loss(net(corrupt(wave, level), level), corrupt(wave, level))"
NO_DATA = "loss = functional.mse_loss(net(torch.randn(100, 12), level), hiss)"
SOFT_ONES = """
    loss = functional.mse_loss(net(corrupt(wave, level), level), 1 + 0.05 * hiss)
"""


def _found(run: Run) -> list[Finding]:
    try:
        return list(check(run))
    except NothingToJudge:
        return []


def _recorded(folder: Path, step: str, pace: str = "0.02") -> Run:
    return died(folder, SCRIPT.format(step=step.strip(), pace=pace))


@pytest.mark.parametrize("step", [OWN, INLINE], ids=["in a function", "in the loop"])
def test_a_target_drawn_apart_from_the_noise_in_the_input_is_named(
    step: str, tmp_path: Path
) -> None:
    run = _recorded(tmp_path, step)
    (finding,) = _found(run)
    assert finding.status == "likely"
    noised = (
        SCRIPT.format(step=step.strip(), pace="0.02")
        .splitlines()
        .index("    " + step.strip().splitlines()[0])
    )
    assert finding.where[0].line == noised + 1


@pytest.mark.parametrize(
    "step",
    [ONCE, SCORE, ROW_BY_ROW, PARTS, CLEAN, TWO_NOISES, NO_DATA, SOFT_ONES],
    ids=[
        "drawn once",
        "drawn once, negative",
        "drawn once, row by row",
        "drawn once, written into a part",
        "the data is the target",
        "the target is data with other noise",
        "numbers for a benchmark",
        "soft labels",
    ],
)
def test_what_the_input_holds_or_data_is_in_is_no_foreign_noise(step: str, tmp_path: Path) -> None:
    assert _found(_recorded(tmp_path, step)) == []


@pytest.mark.parametrize("pace", ["0.02", "9.0"], ids=["calm", "far off"])
def test_what_a_sampler_makes_of_its_own_answers_was_never_prepared(
    pace: str, tmp_path: Path
) -> None:
    run = _recorded(tmp_path, ONCE, pace)
    assert any(row.fed_back for row in run.evaluation.inputs)
    try:
        assert list(check_inputs(run)) == []
    except NothingToJudge:
        pass
