# %% [markdown]
# # Two-view contrastive pre-training on sensor patches

# %%
import copy
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

random.seed(31)
np.random.seed(31)
torch.manual_seed(31)

# %%
n_groups, dim = 64, 30
centres = torch.randn(n_groups, dim)
which = torch.arange(1024) % n_groups
points = centres[which] + 0.5 * torch.randn(1024, dim)
points = (points - points.mean(0)) / points.std(0)
loader = DataLoader(TensorDataset(points), batch_size=64, shuffle=True, drop_last=True)


def view(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return (x + 0.3 * torch.randn_like(x)) * keep


# %%
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return F.normalize(self.projector(self.body(x)), dim=-1)


def nt_xent(a, b, temperature=0.2):
    z = torch.cat([a, b])
    sim = z @ z.T / temperature
    sim = sim.masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
    n = len(a)
    target = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, target)


# %%
net = Encoder()
start = copy.deepcopy(net.state_dict())
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
epochs = 6
total = epochs * len(loader)
sched = LambdaLR(opt, lambda s: min((s + 1) / 10, max(0.05, 1 - s / total)))

# %%
curve = []
for epoch in range(epochs):
    for (x,) in loader:
        loss = nt_xent(net(view(x)), net(view(x)))
        opt.zero_grad()
        loss.backward()
        sched.step()
        curve.append(loss.item())
    print(f"epoch {epoch} nt-xent {np.mean(curve[-len(loader) :]):.4f} lr {sched.get_last_lr()[0]:.5f}")

# %%
moved = sum((net.state_dict()[k] - v).norm().item() for k, v in start.items())
print(f"distance from start: {moved:.3f}")
