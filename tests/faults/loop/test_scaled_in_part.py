"""A sum of a scaled loss and of a term that is not, and sums that are scaled as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from sawbones.diagnosis import diagnose_script
from sawbones.observe.census import Census
from sawbones.observe.signals.beside_scale import BesideScale
from sawbones.observe.sites import SiteFinder

PROGRAM = """
import torch
from torch import nn

torch.manual_seed(3)
encoder, colour, depth = nn.Linear(6, 16), nn.Linear(16, 3), nn.Linear(16, 1)
everything = [*encoder.parameters(), *colour.parameters(), *depth.parameters()]
optimizer = torch.optim.SGD(everything, lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
for step in range(30):
    pixels = torch.randn(32, 6)
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = encoder(pixels).relu()
        scores, far = colour(hidden), depth(hidden)
    first = nn.functional.cross_entropy(scores.float(), pixels[:, :3].argmax(1))
    second = (far.float().squeeze(1) - pixels[:, 0]).abs().mean()
    optimizer.zero_grad()
    {total}
    total.backward()
    scaler.step(optimizer)
    scaler.update()
"""
IN_PART = "total = scaler.scale(first) + 0.3 * second"
WHOLE = "total = scaler.scale(first + 0.3 * second)"


@pytest.mark.parametrize(("total", "statuses"), [(IN_PART, ["proven"]), (WHOLE, [])])
def test_a_term_past_the_scaler_is_named_where_the_other_is_scaled(
    tmp_path: Path, total: str, statuses: list[str]
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("{total}", total))
    found = diagnose_script(
        "train.py",
        working_folder=tmp_path,
        seconds=120,
        only="loop.scaler-misuse",
        experiments=False,
    ).report.findings
    assert [f.status for f in found] == statuses
    assert all(f.where[0].line == 18 for f in found)


Term = torch.Tensor
WAYS: dict[str, tuple[Callable[[Term, Term, Term], Term], float | None]] = {
    "a weighted term": (lambda scaled, term, _: (scaled + 0.25 * term) / 2, 0.125),
    "subtracted": (lambda scaled, term, _: scaled - term, 1.0),
    "stacked": (lambda scaled, term, _: torch.stack([scaled, term]).sum(), 1.0),
    "scaled by hand": (lambda scaled, term, scale: scaled + term * scale, 1024.0),
    "scaled one by one and divided": (lambda scaled, *_: (scaled + scaled) / 4, None),
    "a term of weight zero": (lambda scaled, term, _: scaled + 0 * term, None),
    "a term without gradients": (lambda scaled, term, _: scaled + term.detach(), None),
    "no scaled value": (lambda _, term, scale: term * scale, None),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_constant_before_a_term_is_read_off_the_graph(way: str) -> None:
    layer = nn.Linear(2, 1)
    loss, term = layer(torch.ones(1, 2)).sum(), layer.weight.square().sum()
    scaled = loss * torch.tensor(1024.0)
    make, factor = WAYS[way]
    census = Census(SiteFinder())
    found = BesideScale().of(make(scaled, term, torch.tensor(1024.0)), [(scaled, loss)], census)
    assert (found and found["factor"]) == factor
    if found is not None:
        assert found["tensors"] == [census.tensor_index(layer.weight)]
