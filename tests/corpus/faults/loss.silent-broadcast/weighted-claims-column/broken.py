import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)
x = torch.randn(960, 7)
cost = torch.tanh(x[:, 0] - x[:, 3]) + 0.5 * x[:, 5] + 0.1 * torch.randn(960)
exposure = 0.5 + torch.rand(960, 1)
net = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
for epoch in range(4):
    for rows in torch.randperm(960).split(48):
        error = F.smooth_l1_loss(net(x[rows]), cost[rows], reduction="none")
        loss = (error * exposure[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
