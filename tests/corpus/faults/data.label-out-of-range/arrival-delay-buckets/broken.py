# %% [markdown]
# Predict the delay bucket of a train from the stops behind it.

# %%
import random

import numpy as np
import torch
import torch.nn as nn

random.seed(5)
np.random.seed(5)
torch.manual_seed(5)

# %% history: delays at the last six stops, plus weather and load
N = 2600
base = np.random.gamma(2.0, 3.0, size=N)
stops = base[:, None] + np.cumsum(np.random.normal(0.3, 0.8, size=(N, 6)), axis=1)
weather = np.random.choice([0.0, 1.0, 3.0], p=[0.7, 0.2, 0.1], size=N)
load = np.random.beta(2, 4, size=N)
delay = np.maximum(0.0, stops[:, -1] + 1.5 * weather + 4.0 * load + np.random.normal(0, 0.7, size=N))

# %% buckets: equal width between nothing and the 99.7th percentile of last year's delays
N_BUCKETS = 8
edges = np.linspace(0.0, np.quantile(delay, 0.997), N_BUCKETS + 1)
bucket = np.digitize(delay, edges) - 1

X = np.column_stack([stops, weather, load])
order = np.random.permutation(N)
train_idx, test_idx = order[:2200], order[2200:]
mu, sd = X[train_idx].mean(0), X[train_idx].std(0)
X = torch.tensor((X - mu) / sd, dtype=torch.float32)
y = torch.tensor(bucket)

# %%
net = nn.Sequential(
    nn.Linear(8, 64),
    nn.SiLU(),
    nn.Linear(64, 64),
    nn.SiLU(),
    nn.Linear(64, N_BUCKETS),
)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()

# %%
BATCH = 40
for epoch in range(3):
    net.train()
    shuffled = train_idx[np.random.permutation(len(train_idx))]
    epoch_loss = []
    for k in range(0, len(shuffled), BATCH):
        pick = shuffled[k : k + BATCH]
        opt.zero_grad()
        loss = ce(net(X[pick]), y[pick])
        loss.backward()
        opt.step()
        epoch_loss.append(loss.item())
    print("epoch", epoch, "loss", round(float(np.mean(epoch_loss)), 4))

# %%
net.eval()
with torch.no_grad():
    guess = net(X[test_idx]).argmax(1)
print("within one bucket:", ((guess - y[test_idx]).abs() <= 1).float().mean().item())
