"""Approximate a friction map with a tanh network; the gain of the hidden units is a setting."""

import numpy as np
import torch
from torch import nn

CONFIG = dict(hidden=64, gain=1.0, lr=3e-3, batch=64, epochs=8, seed=10)
np.random.seed(CONFIG["seed"])
torch.manual_seed(CONFIG["seed"])

X = np.random.randn(1200, 6).astype("float32")
y = (np.sin(1.2 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] - 0.4 * np.abs(X[:, 3])).astype("float32")
y = (y - y.mean()) / y.std()
X, y = torch.from_numpy(X), torch.from_numpy(y)


class GainTanh(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        return torch.tanh(self.gain * x)


hidden = CONFIG["hidden"]
net = nn.Sequential(
    nn.Linear(6, hidden),
    GainTanh(CONFIG["gain"]),
    nn.Linear(hidden, hidden),
    GainTanh(CONFIG["gain"]),
    nn.Linear(hidden, 1),
    nn.Flatten(0),
)
optimizer = torch.optim.Adam(net.parameters(), lr=CONFIG["lr"])
for epoch in range(CONFIG["epochs"]):
    net.train()
    for rows in torch.randperm(1000).split(CONFIG["batch"]):
        loss = nn.functional.mse_loss(net(X[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(epoch, f"train {loss.item():.4f} test {nn.functional.mse_loss(net(X[1000:]), y[1000:]).item():.4f}")
