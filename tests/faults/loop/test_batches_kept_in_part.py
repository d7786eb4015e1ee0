"""Two runs that keep another part of their batches are compared by which batch it was, not by its
place in the list.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

import sawbones
from sawbones.observe.options import Options
from sawbones.schema import Run
from sawbones.trials.twin import compare


def seeded_run(folder: Path) -> Run:
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with sawbones.watch(model, out=folder, options=Options(deep_steps=(), deep_every=0)) as watched:
        for _ in range(12):
            optimizer.zero_grad()
            model(torch.randn(4, 3)).square().mean().backward()
            optimizer.step()
        run: Run = watched.close()
    return run


def test_a_thinned_record_is_no_difference_and_another_batch_is(tmp_path: Path) -> None:
    run = seeded_run(tmp_path / "run")
    assert [b.index for b in run.batches] == list(range(12))
    thinned = replace(run, batches=tuple(b for b in run.batches if b.index < 5 or b.index % 3 == 0))
    assert compare(run, thinned).differs is None
    assert compare(thinned, run).differs is None
    other = replace(
        run,
        batches=(
            *run.batches[:9],
            replace(run.batches[9], fingerprints=(1, 2, 3, 4)),
            *run.batches[10:],
        ),
    )
    assert compare(thinned, other).differs.index == 9
