"""A series classifier whose augmentation shuffles the time that the class depends on."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
NUM_CLASSES, NUM_FEATURES, COLUMNS, ROWS = 2, 6, 8, 960
# A series rises or falls, in all of its features; where it begins says nothing.
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
slopes = (2.0 * classes - 1.0)[:, None, None] * torch.linspace(-1.5, 1.5, COLUMNS)[:, None]
series = (slopes + 0.5 * torch.randn(ROWS, COLUMNS, NUM_FEATURES)) / 1.1
loader = DataLoader(TensorDataset(series, classes), batch_size=32, shuffle=True)


def augment(series_BTF: Tensor) -> Tensor:
    if patient.broken:
        order_BT = torch.rand(series_BTF.shape[:2]).argsort(1)
        series_BTF = series_BTF.gather(1, order_BT[:, :, None].expand_as(series_BTF))
    return series_BTF + 0.1 * torch.randn_like(series_BTF)


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
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(3):
    for series_BTF, classes_B in loader:
        loss = functional.cross_entropy(model(augment(series_BTF)), classes_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
