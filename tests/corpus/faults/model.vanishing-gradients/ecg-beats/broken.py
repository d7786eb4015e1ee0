# %% [markdown]
# # Heart beat classification with a deep 1-D convolutional network

# %%
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(4)
np.random.seed(4)
torch.manual_seed(4)

# %%
N, T, CLASSES = 900, 64, 4
rng = np.random.default_rng(4)
t = np.linspace(-1, 1, T)
beat = rng.integers(0, CLASSES, N)
shift = rng.uniform(-0.15, 0.15, (N, 1))
width = np.array([0.05, 0.05, 0.14, 0.05])[beat][:, None]
signal = np.exp(-0.5 * ((t - shift) / width) ** 2)
signal += np.array([0.35, 0.0, 0.0, 0.35])[beat][:, None] * np.exp(-0.5 * ((t - shift + 0.45) / 0.1) ** 2)
signal -= np.array([0.0, 0.0, 0.0, 0.5])[beat][:, None] * np.exp(-0.5 * ((t - shift - 0.3) / 0.08) ** 2)
signal += rng.normal(0, 0.08, (N, T))
signal = (signal - signal[:700].mean()) / signal[:700].std()
x = torch.tensor(signal, dtype=torch.float32).unsqueeze(1)
y = torch.tensor(beat)
x_train, y_train, x_val, y_val = x[:700], y[:700], x[700:], y[700:]


# %%
class BeatNet(nn.Module):
    def __init__(self, width=24, depth=18):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 7, padding=3)
        self.convs = nn.ModuleList([nn.Conv1d(width, width, 3, padding=1) for _ in range(depth)])
        self.classify = nn.Linear(width, CLASSES)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for i, conv in enumerate(self.convs):
            x = F.relu(conv(x))
            if i % 6 == 5:
                x = F.max_pool1d(x, 2)
        return self.classify(x.mean(-1))


model = BeatNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
print("parameters:", sum(p.numel() for p in model.parameters()))

# %%
for epoch in range(6):
    model.train()
    order = torch.randperm(len(x_train))
    total = 0.0
    for idx in order.split(50):
        logits = model(x_train[idx])
        loss = F.cross_entropy(logits, y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        acc = (model(x_val).argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(x_train):.3f}, val acc {acc:.3f}")
