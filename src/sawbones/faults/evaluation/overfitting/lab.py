"""A series classifier with far too few examples, trained until it knows them by heart."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

STEPS = 400  # the fault shows late
patient = admit()
NUM_CLASSES, NUM_FEATURES, COLUMNS, ROWS = 4, 12, 6, 960
# A series of measurements belongs to the class whose pattern it follows, with noise.
patterns = torch.randn(NUM_CLASSES, COLUMNS, NUM_FEATURES)
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
series = (patterns[classes] + 3 * torch.randn(ROWS, COLUMNS, NUM_FEATURES)) / 3.2
num_train = 48 if patient.broken else 800
loader = DataLoader(
    TensorDataset(series[:num_train], classes[:num_train]), batch_size=16, shuffle=True
)
held_out = DataLoader(TensorDataset(series[800:], classes[800:]), batch_size=160)


class SeriesClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.read = nn.Linear(NUM_FEATURES, width)
        self.places = nn.Parameter(0.1 * torch.randn(COLUMNS, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_CLASSES))

    def forward(self, series_BTF: Tensor) -> Tensor:
        scores: Tensor = self.head(self.layer(self.read(series_BTF) + self.places).mean(1))
        return scores


model = SeriesClassifier()
optimizer = AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
patient.watch(model)


def validate() -> float:
    model.eval()
    with torch.no_grad():
        found = float(sum(functional.cross_entropy(model(s), c) for s, c in held_out))
    model.train()
    return found


for _ in range(30 if patient.broken else 2):
    for series_BTF, classes_B in loader:
        loss = functional.cross_entropy(model(series_BTF), classes_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    print(f"held-out loss {validate():.3f}")
patient.discharge()
