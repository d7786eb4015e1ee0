"""A recurrent net over long series whose gradient explodes through time, because nothing clips it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
ROWS, TIME, WIDTH = 1280, 40, 24
# The sum of the two marked values of a series.
values = torch.randn(ROWS, TIME)
marks = torch.zeros(ROWS, TIME)
marks.scatter_(1, torch.rand(ROWS, TIME).argsort(1)[:, :2], 1.0)
sums = (values * marks).sum(1, keepdim=True) / 1.4
loader = DataLoader(TensorDataset(torch.stack((values, marks), -1), sums), batch_size=32, shuffle=True)


class Adder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Linear(2, WIDTH)
        self.carry = nn.Linear(WIDTH, WIDTH)
        nn.init.orthogonal_(self.carry.weight)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, series_BTF: Tensor) -> Tensor:
        state = series_BTF.new_zeros(len(series_BTF), WIDTH)
        for given in self.read(series_BTF).unbind(1):
            state = functional.leaky_relu(given + self.carry(state), 0.5)
        total: Tensor = self.head(state)
        return total


model = Adder()
optimizer = SGD(model.parameters(), lr=0.03, momentum=0.9)
patient.watch(model)

for _ in range(3):
    for series_BTF, sums_B1 in loader:
        loss = functional.mse_loss(model(series_BTF), sums_B1)
        optimizer.zero_grad()
        loss.backward()
        if not patient.broken:
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        patient.record(loss)
        optimizer.step()
patient.discharge()
