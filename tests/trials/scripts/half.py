"""A regression in half precision. float16 without loss scaling loses its small gradients; bfloat16
keeps them.
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

kind = torch.float16 if sys.argv[1] == "float16" else torch.bfloat16
torch.manual_seed(0)
x = torch.randn(64, 16)
y = 0.01 * torch.randn(64, 8)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8))
nn.init.normal_(model[2].weight, std=1e-3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(12):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=kind):
        out = model(x)
        loss = 1e-3 * F.mse_loss(out.float(), y)
    loss.backward()
    optimizer.step()
