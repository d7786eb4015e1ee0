"""Two-layer graph network on random molecules, with a probe that watches how strongly the hidden units fire."""

import random

import numpy as np
import torch
from torch import nn

ATOMS, FEATURES, HIDDEN = 14, 6, 192


def molecules(count, gen):
    kind = torch.randint(0, FEATURES, (count, ATOMS), generator=gen)
    bonds = (torch.rand(count, ATOMS, ATOMS, generator=gen) < 0.2).float()
    bonds = ((bonds + bonds.transpose(1, 2)) > 0).float()
    bonds = bonds * (1 - torch.eye(ATOMS))
    nodes = nn.functional.one_hot(kind, FEATURES).float()
    charge = torch.linspace(-1, 1, FEATURES)[kind]
    energy = torch.einsum("bi,bij,bj->b", charge, bonds, charge) / 6 + charge.mean(1)
    return nodes, bonds, energy


class MessageLayer(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.own = nn.Linear(fan_in, fan_out)
        self.near = nn.Linear(fan_in, fan_out, bias=False)

    def forward(self, h, bonds):
        degree = bonds.sum(-1, keepdim=True).clamp(min=1)
        return torch.relu(self.own(h) + self.near(bonds @ h / degree))


class EnergyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = MessageLayer(FEATURES, HIDDEN)
        self.second = MessageLayer(HIDDEN, HIDDEN)
        self.read = nn.Linear(HIDDEN, 1)

    def forward(self, nodes, bonds):
        h = self.second(self.first(nodes, bonds), bonds)
        return self.read(h.sum(1) / ATOMS**0.5).squeeze(-1)


class FiringProbe:
    """Collects what a layer puts out, to tell later which units carry the prediction."""

    def __init__(self, layer):
        self.seen = []
        layer.register_forward_hook(self)

    def __call__(self, layer, inputs, output):
        self.seen.append(output)

    def strongest(self, k=3):
        means = self.seen[-1].detach().mean((0, 1))
        return means.topk(k).indices.tolist()


def main():
    random.seed(31)
    np.random.seed(31)
    torch.manual_seed(31)
    gen = torch.Generator().manual_seed(31)
    model = EnergyModel()
    probe = FiringProbe(model.second)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(100):
        nodes, bonds, energy = molecules(32, gen)
        loss = nn.functional.huber_loss(model(nodes, bonds), energy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d} huber {loss.item():.4f} strongest units {probe.strongest()}")


if __name__ == "__main__":
    main()
