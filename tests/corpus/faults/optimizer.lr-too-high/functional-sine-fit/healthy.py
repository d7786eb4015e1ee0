"""Sine field regression with the parameters kept in a dictionary and a stateless forward pass."""
import random

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

random.seed(5)
np.random.seed(5)
torch.manual_seed(5)

STEPS, BATCH = 120, 64
PEAK_LR = 0.05

points = torch.rand(2048, 2) * 2 - 1
field = torch.sin(3.0 * points[:, :1]) * torch.cos(2.0 * points[:, 1:]) + 0.02 * torch.randn(2048, 1)
field = (field - field.mean()) / field.std()


def make_net():
    return nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))


net = make_net()
theta = {name: p for name, p in net.named_parameters()}
opt = torch.optim.SGD(list(theta.values()), lr=PEAK_LR, momentum=0.9)


def objective(params, x, y):
    return (functional_call(net, params, (x,)) - y).square().mean()


def rate_at(step):
    ramp = min(1.0, (step + 1) / 10)
    return PEAK_LR * ramp


trace = []
order = torch.randperm(len(points))
cursor = 0
for step in range(STEPS):
    if cursor + BATCH > len(points):
        order, cursor = torch.randperm(len(points)), 0
    rows = order[cursor : cursor + BATCH]
    cursor += BATCH
    for group in opt.param_groups:
        group["lr"] = rate_at(step)
    opt.zero_grad(set_to_none=True)
    value = objective(theta, points[rows], field[rows])
    value.backward()
    opt.step()
    trace.append(value.item())
    if step % 20 == 19:
        print(f"step {step + 1:3d}  mse {np.mean(trace[-20:]):.4f}")
