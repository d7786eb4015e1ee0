"""A forecasting Transformer in float16 whose small gradients vanish, because nothing scales the
loss.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
VOLTS = 1e-3  # the signal is measured in volts and has an amplitude of millivolts
time = torch.arange(48) * 0.25
phase, rate = torch.rand(1280, 1) * 6.28, 0.5 + torch.rand(1280, 1)
waves = torch.sin(rate * time + phase)
loader = DataLoader(
    TensorDataset(waves[:, :40].unfold(1, 8, 8), waves[:, 40:]), batch_size=32, shuffle=True
)


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Linear(8, 32)
        self.place = nn.Parameter(torch.randn(5, 32) * 0.1)
        self.norm = nn.LayerNorm(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.feed = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.head = nn.Linear(5 * 32, 8)

    def forward(self, patches: Tensor) -> Tensor:
        x = self.patch(patches) + self.place
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.feed(x)
        forecast: Tensor = VOLTS * self.head(x.flatten(1)).float()
        return forecast


model = Forecaster()
optimizer = Adam(model.parameters(), lr=3e-3, eps=1e-14)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
patient.watch(model)

for _ in range(2):
    for patches, following in loader:
        with torch.autocast("cpu", dtype=torch.float16):
            loss = functional.mse_loss(model(patches), VOLTS * following)
        optimizer.zero_grad()
        if patient.broken:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        patient.record(loss)
patient.discharge()
