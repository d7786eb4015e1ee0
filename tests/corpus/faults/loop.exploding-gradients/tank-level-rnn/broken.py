# Tank level from inflow readings: a ReLU recurrence reads the net flow per minute and reports the level at each minute.
import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

seed = 11
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)

seq_len = 60
hidden_size = 48
batch_size = 32
num_steps = 200


def make_batch(n):
    flow = torch.randn(n, seq_len, 2)
    leak = 0.9
    level = torch.zeros(n)
    levels = []
    for t in range(seq_len):
        level = leak * level + 0.4 * flow[:, t, 0] - 0.2 * flow[:, t, 1]
        levels.append(level)
    return flow, torch.stack(levels, dim=1)


class Elman(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(2, hidden_size, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(hidden_size, 1)
        nn.init.orthogonal_(self.rnn.weight_hh_l0)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states).squeeze(-1)


model = Elman()
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

model.train()
recent = []
for step in range(1, num_steps + 1):
    x, y = make_batch(batch_size)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    recent.append(loss.item())
    if step % 20 == 0:
        print(f"step {step:4d}  mse {np.mean(recent[-20:]):.4f}")

model.eval()
with torch.no_grad():
    x, y = make_batch(256)
    print(f"held-out mse {criterion(model(x), y).item():.4f}")
