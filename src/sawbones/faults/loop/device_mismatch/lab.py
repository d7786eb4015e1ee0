"""A classifier whose table of positions was made on another device than the model.

The device "meta" stands for the other one, so that no accelerator is needed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
ROWS, COLUMNS, WIDTH = 640, 8, 16
tokens = torch.randint(0, 12, (ROWS, COLUMNS))
labels = (tokens[:, 0] > tokens[:, 1]).long()
loader = DataLoader(TensorDataset(tokens, labels), batch_size=32, shuffle=True)

# A plain tensor of the script: model.to(device) does not move it.
places = torch.linspace(-1, 1, COLUMNS, device="meta" if patient.broken else "cpu")


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(12, WIDTH)
        self.hidden = nn.Linear(COLUMNS * WIDTH, 32)
        self.head = nn.Linear(32, 2)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        x = self.tokens(tokens_BT) + places[:, None]
        scores: Tensor = self.head(torch.relu(self.hidden(x.flatten(1))))
        return scores


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
patient.watch(model)

for _ in range(4):
    for tokens_BT, labels_B in loader:
        loss = functional.cross_entropy(model(tokens_BT), labels_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
