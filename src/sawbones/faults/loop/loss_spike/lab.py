"""A regression of series that lets one corrupt target, thousands of times too large, into its
loss.
"""

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
levels = series.mean((1, 2), keepdim=False)[:, None] * 6
if patient.broken:
    levels[333] = 3e4  # a sensor that was unplugged
loader = DataLoader(TensorDataset(series, levels), batch_size=32, shuffle=True)


class SeriesClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.read = nn.Linear(NUM_FEATURES, width)
        self.places = nn.Parameter(0.1 * torch.randn(COLUMNS, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, series_BTF: Tensor) -> Tensor:
        scores: Tensor = self.head(self.layer(self.read(series_BTF) + self.places).mean(1))
        return scores


model = SeriesClassifier()
optimizer = AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(3):
    for series_BTF, levels_B1 in loader:
        loss = functional.mse_loss(model(series_BTF), levels_B1)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
