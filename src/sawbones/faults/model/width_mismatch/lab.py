"""An image classifier whose head is built for another size of image."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
ROWS, SIDE = 480, 14
# The class is the quarter of the image in which the bright spot lies.
spots = torch.randint(0, SIDE, (ROWS, 2))
images = 0.3 * torch.randn(ROWS, 1, SIDE, SIDE)
images[torch.arange(ROWS), 0, spots[:, 0], spots[:, 1]] += 4.0
quarters = (spots >= SIDE // 2).long() @ torch.tensor([2, 1])
loader = DataLoader(TensorDataset(images, quarters), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.hidden = nn.Linear(16 * 4 * 4 if patient.broken else 16 * 3 * 3, 32)
        self.head = nn.Linear(32, 4)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        x = self.pool(torch.relu(self.first(images_BCHW)))
        x = self.pool(torch.relu(self.second(x)))
        x = torch.relu(self.hidden(x.flatten(1)))
        scores: Tensor = self.head(x)
        return scores


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
patient.watch(model)

for _ in range(4):
    for images_BCHW, quarters_B in loader:
        loss = functional.cross_entropy(model(images_BCHW), quarters_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
