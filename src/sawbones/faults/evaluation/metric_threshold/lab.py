"""A series classifier whose accuracy cuts logits at one half, as if they were probabilities."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
NUM_CLASSES, NUM_FEATURES, COLUMNS, ROWS = 2, 12, 6, 960
# A series of measurements belongs to the class whose pattern it follows, with noise.
patterns = torch.randn(NUM_CLASSES, COLUMNS, NUM_FEATURES)
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
series = (patterns[classes] + 3 * torch.randn(ROWS, COLUMNS, NUM_FEATURES)) / 3.2
train, rest = (
    TensorDataset(series[:800], classes[:800].float()),
    TensorDataset(series[800:], classes[800:].float()),
)
loader = DataLoader(train, batch_size=32, shuffle=True)
held_out = DataLoader(rest, batch_size=32)


class SeriesClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.read = nn.Linear(NUM_FEATURES, width)
        self.places = nn.Parameter(0.1 * torch.randn(COLUMNS, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1), nn.Flatten(0))

    def forward(self, series_BTF: Tensor) -> Tensor:
        scores: Tensor = self.head(self.layer(self.read(series_BTF) + self.places).mean(1))
        return scores


model = SeriesClassifier()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)


def validate() -> float:
    model.eval()
    right = 0
    with torch.no_grad():
        for series_BTF, classes_B in held_out:
            found_B = model(series_BTF) > (0.5 if patient.broken else 0.0)
            right += int((found_B == (classes_B > 0.5)).sum())
    model.train()
    return right / 160


for _ in range(3):
    for series_BTF, classes_B in loader:
        loss = functional.binary_cross_entropy_with_logits(model(series_BTF), classes_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    print(f"held-out accuracy {validate():.4f}")
patient.discharge()
