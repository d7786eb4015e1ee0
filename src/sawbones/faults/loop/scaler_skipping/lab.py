"""A classifier of series in float16 whose scaler raises the scale so eagerly that most steps
overflow and are skipped.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
NUM_CLASSES, NUM_FEATURES, COLUMNS, ROWS = 4, 12, 6, 1280
# A series of measurements belongs to the class whose pattern it follows, with noise.
patterns = torch.randn(NUM_CLASSES, COLUMNS, NUM_FEATURES)
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
series = (patterns[classes] + torch.randn(ROWS, COLUMNS, NUM_FEATURES)) / 1.4
loader = DataLoader(TensorDataset(series, classes), batch_size=32, shuffle=True)


class SeriesClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.read = nn.Linear(NUM_FEATURES, width)
        self.mix = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.head = nn.Linear(COLUMNS * width, NUM_CLASSES)

    def forward(self, series_BTF: Tensor) -> Tensor:
        read = self.read(series_BTF)
        scores: Tensor = self.head((read + self.mix(read)).flatten(1))
        return scores


model = SeriesClassifier()
optimizer = Adam(model.parameters(), lr=1e-3)
growth = (
    {"growth_factor": 32.0, "growth_interval": 1}
    if patient.broken
    else {"growth_factor": 2.0, "growth_interval": 2000}
)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, **growth)  # type: ignore[arg-type]
patient.watch(model)

for _ in range(2):
    for series_BTF, classes_B in loader:
        with torch.autocast("cpu", dtype=torch.float16):
            loss = functional.cross_entropy(model(series_BTF), classes_B)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        patient.record(loss)
        scaler.step(optimizer)
        scaler.update()
patient.discharge()
