"""An image classifier that squeezes more than it means to, and a last batch of one image."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
ROWS, SIDE = 161, 8
classes = torch.randint(0, 3, (ROWS,))
images = torch.randn(ROWS, 3, SIDE, SIDE)
images[torch.arange(ROWS), classes] += 0.7
loader = DataLoader(TensorDataset(images, classes), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(3, 16, 3, padding=1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 3)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        x = torch.relu(self.features(images_BCHW))
        x = self.pool(x).squeeze() if patient.broken else self.pool(x).flatten(1)
        scores: Tensor = self.head(x)
        return scores


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
patient.watch(model)

for _ in range(12):
    for images_BCHW, classes_B in loader:
        loss = functional.cross_entropy(model(images_BCHW), classes_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
