"""Day-ahead load forecast: GRU encoder over the past, GRU decoder trained with teacher forcing."""

import numpy as np
import torch
from torch import nn

np.random.seed(44)
torch.manual_seed(44)
PAST, AHEAD = 24, 8


def load_curves(n):
    t = np.arange(PAST + AHEAD)
    phase = np.random.rand(n, 1) * 12
    level = np.random.randn(n, 1) * 0.3
    y = np.sin(2 * np.pi * (t + phase) / 12) + level + 0.4 * np.cumsum(np.random.randn(n, PAST + AHEAD) * 0.2, 1)
    y = (y - y.mean()) / y.std()
    return torch.tensor(y, dtype=torch.float32)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.enc = nn.GRU(1, hidden, batch_first=True)
        self.dec = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, past, fed):
        _, state = self.enc(past.unsqueeze(-1))
        steps, _ = self.dec(fed.unsqueeze(-1), state)
        return self.out(steps).squeeze(-1)

    @torch.no_grad()
    def forecast(self, past):
        _, state = self.enc(past.unsqueeze(-1))
        value, made = past[:, -1:], []
        for _ in range(AHEAD):
            step, state = self.dec(value.unsqueeze(-1), state)
            value = self.out(step).squeeze(-1)
            made.append(value)
        return torch.cat(made, 1)


curves, test = load_curves(640), load_curves(96)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    model.train()
    losses = []
    for rows in torch.randperm(len(curves)).split(32):
        past, ahead = curves[rows, :PAST], curves[rows, PAST:]
        fed = torch.cat([past[:, -1:], ahead[:, :-1]], dim=1)
        loss = nn.functional.mse_loss(model(past, fed), ahead)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    rolled = nn.functional.mse_loss(model.forecast(test[:, :PAST]), test[:, PAST:]).item()
    print(f"epoch {epoch} teacher-forced {np.mean(losses):.4f} rolled out {rolled:.4f}")
