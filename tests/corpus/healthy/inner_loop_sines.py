"""Learn starting weights from which a few gradient steps fit a new sine wave; the network lists its weights itself."""

import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
WAVES, SHOTS, INNER_STEPS, INNER_LR = 8, 10, 2, 0.02


class Curve(nn.Module):
    """Weights in one list in the order in which they are used, so that adapted ones can stand in for them."""

    def __init__(self, width=40):
        super().__init__()
        self.weights = nn.ParameterList()
        for inputs, outputs in ((1, width), (width, width), (width, 1)):
            matrix = torch.empty(outputs, inputs)
            nn.init.uniform_(matrix, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs))
            self.weights.append(nn.Parameter(matrix))
            self.weights.append(nn.Parameter(torch.zeros(outputs).uniform_(-1, 1) / math.sqrt(inputs)))

    def forward(self, x, weights=None):
        weights = self.weights if weights is None else weights
        for place in range(0, len(weights), 2):
            x = F.linear(x, weights[place], weights[place + 1])
            if place + 2 < len(weights):
                x = F.relu(x)
        return x

    def parameters(self):
        return self.weights


def wave(generator):
    height = 0.5 + torch.rand(1, generator=generator)
    shift = math.pi * torch.rand(1, generator=generator)
    x = 6 * torch.rand(2 * SHOTS, 1, generator=generator) - 3
    y = height * torch.sin(x + shift)
    return x[:SHOTS], y[:SHOTS], x[SHOTS:], y[SHOTS:]


def adapted_loss(net, task, create_graph):
    x, y, x_query, y_query = task
    weights = list(net.parameters())
    for _ in range(INNER_STEPS):
        inner = F.mse_loss(net(x, weights), y)
        slopes = torch.autograd.grad(inner, weights, create_graph=create_graph)
        weights = [w - INNER_LR * s for w, s in zip(weights, slopes, strict=True)]
    return F.mse_loss(net(x_query, weights), y_query)


net = Curve()
outer = torch.optim.Adam(net.parameters(), lr=2e-3)
tasks = torch.Generator().manual_seed(11)
for step in range(80):
    net.train()
    loss = torch.stack([adapted_loss(net, wave(tasks), create_graph=True) for _ in range(WAVES)]).mean()
    outer.zero_grad()
    loss.backward()
    outer.step()
    if step % 20 == 19:
        net.eval()
        fresh = torch.Generator().manual_seed(12)
        held_out = [adapted_loss(net, wave(fresh), create_graph=False).item() for _ in range(20)]
        print(step + 1, loss.item(), sum(held_out) / len(held_out))
