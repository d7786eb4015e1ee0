"""Solve a damped oscillator by penalising the residual of its equation (autograd.grad twice)."""

import torch
from torch import nn

torch.manual_seed(110)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
start = torch.zeros(1, 1, requires_grad=True)
for step in range(120):
    t = (torch.rand(64, 1) * 2).requires_grad_()
    u = net(t)
    du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    ddu = torch.autograd.grad(du.sum(), t, create_graph=True)[0]
    residual = ddu + 0.4 * du + 4.0 * u
    u0 = net(start)
    du0 = torch.autograd.grad(u0.sum(), start, create_graph=True)[0]
    loss = 0.1 * residual.pow(2).mean() + (u0 - 1).pow(2).mean() + du0.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 20 == 19:
        print(step + 1, round(loss.item(), 4))
