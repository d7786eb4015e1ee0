"""A learned step of a pendulum, rolled out over whole paths: the gradient explodes through time,
because nothing clips it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
ROWS, TIME, PAUSE = 960, 25, 0.15


def pendulum() -> Tensor:
    angle, speed = 3.6 * torch.rand(ROWS) - 1.8, 2 * torch.rand(ROWS) - 1
    path = [torch.stack((angle, speed), 1)]
    for _ in range(TIME):
        speed = speed - PAUSE * (angle.sin() + 0.1 * speed)
        angle = angle + PAUSE * speed
        path.append(torch.stack((angle, speed), 1))
    return torch.stack(path, 1)


class Rollout(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.change = nn.Sequential(
            nn.Linear(2, width), nn.ELU(), nn.Linear(width, width), nn.ELU(), nn.Linear(width, 2)
        )

    def forward(self, state_B2: Tensor) -> Tensor:
        states = [state_B2]
        for _ in range(TIME):
            states.append(states[-1] + self.change(states[-1]))
        return torch.stack(states[1:], 1)


paths = pendulum()
paths = (paths - paths.mean((0, 1))) / paths.std((0, 1))
loader = DataLoader(TensorDataset(paths), batch_size=32, shuffle=True)
model = Rollout()
optimizer = SGD(model.parameters(), lr=0.01, momentum=0.8)
patient.watch(model)

for _ in range(4):
    for (paths_BT2,) in loader:
        loss = functional.mse_loss(model(paths_BT2[:, 0]), paths_BT2[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        if not patient.broken:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        patient.record(loss)
        optimizer.step()
patient.discharge()
