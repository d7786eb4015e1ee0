"""A series classifier under a hand-written Adam that forgets to correct the bias of its moments."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer
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
        self.read = nn.Linear(NUM_FEATURES, width)
        self.places = nn.Parameter(0.1 * torch.randn(COLUMNS, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_CLASSES))

    def forward(self, series_BTF: Tensor) -> Tensor:
        scores: Tensor = self.head(self.layer(self.read(series_BTF) + self.places).mean(1))
        return scores


class Adam(Optimizer):
    def __init__(self, params: Iterable[nn.Parameter], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(step=0, mean=torch.zeros_like(p), square=torch.zeros_like(p))
                state["step"] += 1
                state["mean"].lerp_(p.grad, 0.1)
                state["square"].lerp_(p.grad**2, 0.001)
                done = 10_000 if patient.broken else state["step"]
                mean, square = state["mean"] / (1 - 0.9**done), state["square"] / (1 - 0.999**done)
                p.sub_(group["lr"] * mean / (square.sqrt() + 1e-8))


model = SeriesClassifier()
optimizer = Adam(model.parameters(), lr=1e-3)
patient.watch(model)

for _ in range(3):
    for series_BTF, classes_B in loader:
        loss = functional.cross_entropy(model(series_BTF), classes_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
