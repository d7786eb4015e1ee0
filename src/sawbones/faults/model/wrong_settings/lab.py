"""An attention layer whose width its heads do not divide."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
inputs = torch.randn(640, 6, 10)
labels = (inputs.mean(1) @ torch.randn(10, 3)).argmax(dim=1)
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)


class Model(nn.Module):
    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.embed = nn.Linear(10, width)
        self.attention = nn.MultiheadAttention(width, num_heads, batch_first=True)
        self.head = nn.Linear(width, 3)

    def forward(self, inputs_BTC: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(inputs_BTC)
        mixed, _ = self.attention(hidden, hidden, hidden)
        scores_BC: torch.Tensor = self.head((hidden + mixed).mean(1))
        return scores_BC


model = Model(30, 8) if patient.broken else Model(32, 8)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    for inputs_BTC, labels_B in loader:
        loss = nn.functional.cross_entropy(model(inputs_BTC), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
