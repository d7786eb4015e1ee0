"""Predict the strength of a beam from ten measurements."""

import torch
from torch import nn

torch.manual_seed(202)
x = torch.randn(1500, 10)
y = x[:, 0] * x[:, 1] + torch.sin(2 * x[:, 2]) + 0.5 * x[:, 3]
y = (y - y.mean()) / y.std()


def beam_net(width=48, depth=4):
    layers, fan = [], 10
    for _ in range(depth):
        layers += [nn.Linear(fan, width), nn.Tanh()]
        fan = width
    return nn.Sequential(*layers, nn.Linear(width, 1), nn.Flatten(0))


def prepare(module):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, mean=0.0, std=module.in_features**-0.5)
        nn.init.constant_(module.bias, 0.0)


net = beam_net().apply(prepare)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    net.train()
    total = 0.0
    for rows in torch.randperm(1200).split(60):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() / 20
    net.eval()
    with torch.no_grad():
        print(f"epoch {epoch} train {total:.4f} test {nn.functional.mse_loss(net(x[1200:]), y[1200:]).item():.4f}")
