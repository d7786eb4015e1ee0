"""Two tasks, weights learned as log-variances: the total may fall below zero."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(107)
x = torch.randn(1800, 12)
hidden = torch.tanh(x @ torch.randn(12, 4))
kind = (hidden @ torch.randn(4, 3)).argmax(1)
size = hidden @ torch.randn(4)
size = (size - size.mean()) / size.std()

trunk = nn.Sequential(nn.Linear(12, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
classify, regress = nn.Linear(64, 3), nn.Linear(64, 1)
log_var = nn.Parameter(torch.zeros(2))
groups = [{"params": [*trunk.parameters(), *classify.parameters(), *regress.parameters()]}, {"params": [log_var], "lr": 2e-2}]
opt = torch.optim.Adam(groups, lr=3e-3)
for epoch in range(4):
    for i in torch.randperm(1500).split(50):
        h = trunk(x[i])
        ce = F.cross_entropy(classify(h), kind[i])
        se = F.mse_loss(regress(h)[:, 0], size[i])
        loss = ce * (-log_var[0]).exp() + log_var[0] / 2 + 0.5 * se * (-log_var[1]).exp() + log_var[1] / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        h = trunk(x[1500:])
        acc = (classify(h).argmax(1) == kind[1500:]).float().mean()
        err = F.mse_loss(regress(h)[:, 0], size[1500:])
    print(f"{epoch} total {loss.item():.3f} ce {ce.item():.3f} se {se.item():.3f} accuracy {acc:.3f} error {err:.3f}")
