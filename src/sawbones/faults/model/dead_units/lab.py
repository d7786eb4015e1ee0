"""A series classifier whose ReLU units start far below zero and never fire."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
NUM_CLASSES, NUM_FEATURES, COLUMNS, ROWS = 4, 12, 6, 960
# A series of measurements belongs to the class whose pattern it follows, with noise.
patterns = torch.randn(NUM_CLASSES, COLUMNS, NUM_FEATURES)
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
series = (patterns[classes] + torch.randn(ROWS, COLUMNS, NUM_FEATURES)) / 1.4
loader = DataLoader(TensorDataset(series, classes), batch_size=32, shuffle=True)


class SeriesClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.stack = nn.Sequential(
            nn.Linear(COLUMNS * NUM_FEATURES, 2 * width),
            nn.ReLU(),
            nn.Linear(2 * width, width),
            nn.ReLU(),
        )
        nn.init.constant_(self.stack[0].bias, -4.0 if patient.broken else 0.0)  # type: ignore[arg-type]
        self.head = nn.Linear(width, NUM_CLASSES)

    def forward(self, series_BTF: Tensor) -> Tensor:
        scores: Tensor = self.head(self.stack(series_BTF.flatten(1)))
        return scores


model = SeriesClassifier()
optimizer = AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(3):
    for series_BTF, classes_B in loader:
        loss = functional.cross_entropy(model(series_BTF), classes_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
