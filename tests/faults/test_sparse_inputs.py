"""A model that is given a sparse matrix beside its rows, as graph networks are."""

from __future__ import annotations

from pathlib import Path

from crash_runs import died

NODES = """
import torch
from torch import nn

links = (torch.rand(80, 80) < 0.05).float().to_sparse()
x = torch.randn(80, 6)
kinds = (x[:, 0] > 0).long()

class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.tell = nn.Linear(6, 2)

    def forward(self, links, rows):
        return self.tell(torch.sparse.mm(links, rows) + rows)

model = Spread()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(links, x)[:50], kinds[:50])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(links, x).argmax(1) == kinds)[50:].float().mean()
"""


def test_nothing_is_switched_off_by_a_sparse_matrix(tmp_path: Path) -> None:
    run = died(tmp_path, NODES)
    assert run.ending.kind == "finished"
    log = tmp_path / "run" / "sawbones.log"
    assert not log.exists() or "Traceback" not in log.read_text()
    assert run.populations.passes
