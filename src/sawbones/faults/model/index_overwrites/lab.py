"""A graph of two kinds of nodes, whose neighbours are added up."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from sawbones.lab.patient import admit

patient = admit()
NODES, EDGES, WIDTH = 240, 1900, 12
kinds = torch.randint(0, 2, (NODES,))
start = torch.randint(0, NODES, (EDGES,))
friends = torch.stack([torch.where(kinds == kind)[0][torch.randperm(80)[:60]] for kind in (0, 1)])
end = friends[kinds[start], torch.randint(0, 60, (EDGES,))]
features = torch.randn(NODES, WIDTH) + 0.4 * kinds[:, None]
trained = torch.randperm(NODES)[:120]


class Neighbours(nn.Module):
    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.own, self.others = nn.Linear(width, outputs), nn.Linear(width, outputs)

    def forward(self, nodes_NC: Tensor) -> Tensor:
        total_NC = torch.zeros_like(nodes_NC)
        if patient.broken:
            total_NC[end] += nodes_NC[start]
        else:
            total_NC = total_NC.index_add(0, end, nodes_NC[start])
        scores: Tensor = self.own(nodes_NC) + self.others(total_NC / 8)
        return scores


model = nn.Sequential(Neighbours(WIDTH, 16), nn.ReLU(), Neighbours(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
patient.watch(model)
for _ in range(40):
    loss = functional.cross_entropy(model(features)[trained], kinds[trained])
    optimizer.zero_grad()
    loss.backward()
    patient.record(loss)
    optimizer.step()
patient.discharge()
