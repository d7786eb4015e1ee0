# %% [markdown]
# # Drug response from gene expression
# Baseline MLP with batch norm, exported from the notebook.

# %%
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 31
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

BATCH_SIZE = 32
EPOCHS = 4
LR = 3e-3

# %%
n_lines, n_genes = 480, 60
pathways = np.random.randn(n_lines, 6)
loading = np.random.randn(6, n_genes) / 2.5
expression = pathways @ loading + 0.5 * np.random.randn(n_lines, n_genes)
response = np.tanh(pathways[:, 0] + 0.5 * pathways[:, 1]) + 0.3 * pathways[:, 2]
response += 0.1 * np.random.randn(n_lines)

split = 400
mu, sd = expression[:split].mean(0), expression[:split].std(0)
X = torch.tensor((expression - mu) / sd, dtype=torch.float32)
y = torch.tensor((response - response[:split].mean()) / response[:split].std(), dtype=torch.float32).unsqueeze(1)

train_ds = TensorDataset(X[:split], y[:split])
test_ds = TensorDataset(X[split:], y[split:])
train_dl = DataLoader(train_ds, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
test_dl = DataLoader(test_ds, batch_size=80)


# %%
def block(i, o):
    return nn.Sequential(nn.Linear(i, o, bias=False), nn.BatchNorm1d(o), nn.ReLU())


net = nn.Sequential(block(n_genes, 64), block(64, 64), block(64, 32), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=LR)
mse = nn.MSELoss()

# %%
for epoch in range(EPOCHS):
    net.train()
    seen, total = 0, 0.0
    for xb, yb in train_dl:
        loss = mse(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() * len(xb)
        seen += len(xb)

    net.eval()
    with torch.no_grad():
        errors = torch.cat([(net(xb) - yb).pow(2) for xb, yb in test_dl])
    print(f"epoch {epoch + 1}/{EPOCHS}  train mse {total / seen:.3f}  test mse {errors.mean():.3f}")

# %%
net.eval()
with torch.no_grad():
    pred = net(X[split:]).squeeze(1).numpy()
print("test r:", np.corrcoef(pred, y[split:].squeeze(1).numpy())[0, 1].round(3))
