"""Long signals beside the labels of others: what tells them is not where something sounds."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from crash_runs import died

from sawbones.faults.data.labels_misaligned.check import check
from sawbones.observe.signals.label_probe import probe_pairs
from sawbones.observe.sources.log import SourceLog
from sawbones.schema.labels import LabelProbe, LabelsTold, PairedBefore
from sawbones.stats.evaluations import hits, latest_hits


def tones(labels: np.ndarray) -> list[np.ndarray]:
    """One of four pitches, anywhere in a row of noise."""
    draws, moments = np.random.default_rng(0), np.arange(2000)
    rows = []
    for label in labels:
        sounds = np.roll(moments < 600, int(draws.integers(0, 2000)))
        wave = np.sin(moments * (0.3 + 0.2 * label) + draws.uniform(0, 6))
        rows.append((sounds * wave + draws.normal(0, 0.3, 2000)).astype(np.float32))
    return rows


def test_the_pitch_of_a_sound_tells_its_label_wherever_it_sounds() -> None:
    labels = np.random.default_rng(1).integers(0, 4, 200)
    rows = tones(labels)
    told = probe_pairs(rows, labels.astype(float).tolist(), num_in_row=0)
    apart = probe_pairs(rows, np.roll(labels, 7).astype(float).tolist(), num_in_row=0)
    assert told is not None and told.z > 10
    assert apart is not None and apart.z < 4


@pytest.mark.parametrize(("change", "versions"), [("order", 2), ("values", 1)])
def test_a_large_list_is_noted_again_where_its_order_is_another(change: str, versions: int) -> None:
    rows = [np.full(1100, number, np.float32) for number in range(1000)]
    log, frame = SourceLog(str), sys._getframe()
    log.look(frame, frame.f_lineno, 0)
    if change == "order":
        rows.reverse()
    else:
        rows[3][:] = -1.0
    log.look(frame, frame.f_lineno, 0)
    assert len([v for v in log._versions if v.name == "rows"]) == versions
    assert float(log._versions[-1].rows.numbers[-1, 0]) == (0.0 if change == "order" else 999.0)


BY_HEART = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x, labels = torch.randn(320, 12), torch.randint(0, 4, (320, 1))
y = x[:, :4].argmax(1, keepdim=True) if {learnable} else labels
train = DataLoader(TensorDataset(x[:120], y[:120]), batch_size=6, shuffle=True)
held = DataLoader(TensorDataset(x[120:], y[120:]), batch_size=50)
net = nn.Sequential(nn.Linear(12, 96), nn.ReLU(), nn.Linear(96, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(4):
    for rows, wanted in train:
        loss = nn.functional.cross_entropy(net(rows), wanted.squeeze(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = 0
    for rows, wanted in held:
        guess = net(rows).data.max(1, keepdim=True)[1]
        right += guess.eq(wanted.data.view_as(guess)).sum()
"""
ORDER = "with one order for both"


@pytest.mark.parametrize(("learnable", "found"), [("False", 1), ("True", 0)])
def test_what_is_learned_by_heart_says_nothing_for_the_pairs(
    learnable: str, found: int, tmp_path: Path
) -> None:
    from dataclasses import replace

    run = died(tmp_path, BY_HEART.replace("{learnable}", learnable))
    counted, late = hits(run), latest_hits(run, run.num_steps // 2)
    assert counted is not None and counted[2] == 4 * 200
    assert late is not None and late[2] == 3 * 200
    now = LabelsTold("classes", 600, 0.26, 0.25, 0.02, 0.4, baseline=1.38)
    then = replace(now, score=0.9, z=30.0)
    probe = LabelProbe(now, None, None, PairedBefore(then, now, ORDER, None))
    assert len(list(check(replace(run, label_probe=probe)))) == found
