# The adding problem: read (value, marker) pairs, return the sum of the two marked values.
import random

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

seed = 11
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)

seq_len = 40
hidden_size = 64
batch_size = 32
num_steps = 220


def make_batch(n):
    values = torch.rand(n, seq_len) * 2 - 1
    markers = torch.zeros(n, seq_len)
    first = torch.randint(0, seq_len // 2, (n,))
    second = torch.randint(seq_len // 2, seq_len, (n,))
    rows = torch.arange(n)
    markers[rows, first] = 1.0
    markers[rows, second] = 1.0
    target = (values * markers).sum(dim=1, keepdim=True)
    return torch.stack([values, markers], dim=-1), target


class Elman(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(2, hidden_size, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(hidden_size, 1)
        # identity recurrence, so that the marked values survive until the end of the sequence
        nn.init.eye_(self.rnn.weight_hh_l0)
        nn.init.normal_(self.rnn.weight_ih_l0, std=0.05)
        nn.init.zeros_(self.rnn.bias_hh_l0)
        nn.init.zeros_(self.rnn.bias_ih_l0)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1])


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
