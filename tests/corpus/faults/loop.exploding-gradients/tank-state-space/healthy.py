"""Identify a two-tank heating loop from its valve signal: a learned linear state-space model, unrolled in time."""

import random

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(2)
np.random.seed(2)
random.seed(2)

HORIZON = 60


def simulate(num_runs, rng):
    """Slow first-order tanks, one feeding the other, driven by a valve that moves every few minutes."""
    valve = np.repeat(rng.normal(0, 1, (num_runs, HORIZON // 6)), 6, axis=1)
    upper, lower = np.zeros(num_runs), np.zeros(num_runs)
    levels = np.empty((num_runs, HORIZON))
    for t in range(HORIZON):
        upper = 0.9 * upper + 0.35 * valve[:, t]
        lower = 0.85 * lower + 0.4 * np.tanh(upper)
        levels[:, t] = lower
    levels = levels / 1.4 + rng.normal(0, 0.05, levels.shape)
    return torch.tensor(valve, dtype=torch.float32).unsqueeze(-1), torch.tensor(levels, dtype=torch.float32)


class StateSpace(nn.Module):
    def __init__(self, state=16):
        super().__init__()
        self.transition = nn.Parameter(0.6 * torch.eye(state) + 0.02 * torch.randn(state, state))
        self.drive = nn.Linear(1, state)
        self.readout = nn.Linear(state, 1)

    def forward(self, valve):
        state = valve.new_zeros(valve.size(0), self.transition.size(0))
        outputs = []
        for t in range(valve.size(1)):
            state = state @ self.transition.T + self.drive(valve[:, t])
            outputs.append(self.readout(state))
        return torch.cat(outputs, dim=1)


rng = np.random.default_rng(2)
train_u, train_y = simulate(256, rng)
test_u, test_y = simulate(64, rng)

model = StateSpace()
optimizer = torch.optim.SGD(model.parameters(), lr=0.004, momentum=0.9)
loss_fn = nn.MSELoss()
batch_size = 32

for epoch in range(12):
    model.train()
    order = torch.randperm(len(train_u))
    epoch_loss = 0.0
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        optimizer.zero_grad()
        loss = loss_fn(model(train_u[rows]), train_y[rows])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        epoch_loss += loss.item() * len(rows) / len(order)
    model.eval()
    with torch.no_grad():
        test_loss = loss_fn(model(test_u), test_y).item()
    print(f"epoch {epoch:2d}  train {epoch_loss:.4f}  test {test_loss:.4f}")
