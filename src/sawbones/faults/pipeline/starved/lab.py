"""A series classifier whose samples are unpacked anew each time they are read."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, Dataset

from sawbones.lab.patient import admit

patient = admit()
NUM_CLASSES, NUM_FEATURES, COLUMNS, ROWS = 4, 12, 6, 960
# A series of measurements belongs to the class whose pattern it follows, with noise.
patterns = torch.randn(NUM_CLASSES, COLUMNS, NUM_FEATURES)
classes = torch.randint(0, NUM_CLASSES, (ROWS,))
series = (patterns[classes] + torch.randn(ROWS, COLUMNS, NUM_FEATURES)) / 1.4
packed = [" ".join([f"{value:.6f}" for value in row.flatten().tolist()] * 200) for row in series]


def unpack(text: str) -> Tensor:
    """Two hundred readings of everything, of which the first is kept."""
    values = [round(float(value), 4) for value in text.split()]
    return torch.tensor(values[: COLUMNS * NUM_FEATURES]).view(COLUMNS, NUM_FEATURES)


class Readings(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self) -> None:
        self.series = None if patient.broken else [unpack(text) for text in packed]

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return unpack(packed[i]) if self.series is None else self.series[i], classes[i]


loader = DataLoader(Readings(), batch_size=32, shuffle=True)


class SeriesClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.read = nn.Linear(COLUMNS * NUM_FEATURES, width)
        self.head = nn.Sequential(nn.GELU(), nn.Linear(width, NUM_CLASSES))

    def forward(self, series_BTF: Tensor) -> Tensor:
        scores: Tensor = self.head(self.read(series_BTF.flatten(1)))
        return scores


model = SeriesClassifier()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(2):
    for series_BTF, classes_B in loader:
        loss = functional.cross_entropy(model(series_BTF), classes_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
