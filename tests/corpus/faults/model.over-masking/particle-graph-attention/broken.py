"""Graph attention over particles in a box: predict the energy of each particle from its neighbours."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Particles(Dataset):
    """Positions in a unit box and charges; the energy sums charges of near particles over distance."""

    def __init__(self, size, count, radius, seed):
        gen = torch.Generator().manual_seed(seed)
        self.xy = torch.rand(size, count, 2, generator=gen)
        self.charge = torch.randn(size, count, 1, generator=gen)
        distance = torch.cdist(self.xy, self.xy)
        self.near = distance < radius
        weight = torch.exp(-3 * distance) * self.near
        self.energy = (weight @ self.charge).squeeze(-1) * self.charge.squeeze(-1).sign()
        self.energy = (self.energy - self.energy.mean()) / self.energy.std()
        self.near = self.near & ~torch.eye(count, dtype=torch.bool)

    def __len__(self):
        return len(self.xy)

    def __getitem__(self, i):
        node = torch.cat([(self.xy[i] - 0.5) * 3.4, self.charge[i]], dim=-1)
        return node, self.near[i], self.energy[i]


class GraphAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.source = nn.Linear(width, width)
        self.target = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)

    def forward(self, h, near):
        pair = torch.tanh(self.source(h)[:, :, None] + self.target(h)[:, None])
        scores = self.score(pair).squeeze(-1)
        scores = torch.where(near, scores, torch.full_like(scores, -torch.inf))
        alpha = torch.softmax(scores, dim=-1)
        # keep the degree: an average alone cannot tell one neighbour from ten
        return (alpha @ self.value(h)) * near.sum(-1, keepdim=True).float().sqrt()


class EnergyNet(nn.Module):
    def __init__(self, width=32, rounds=2):
        super().__init__()
        self.lift = nn.Linear(3, width)
        self.rounds = nn.ModuleList([GraphAttention(width) for _ in range(rounds)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(rounds)])
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, node, near):
        h = self.lift(node)
        for norm, attend in zip(self.norms, self.rounds):
            h = h + attend(norm(h), near)
        return self.readout(h).squeeze(-1)


def run():
    torch.manual_seed(4)
    loader = DataLoader(Particles(1200, 28, 0.42, seed=4), batch_size=16, shuffle=True)
    held_out = DataLoader(Particles(160, 28, 0.42, seed=40), batch_size=32)
    net = EnergyNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    huber = nn.SmoothL1Loss()
    for step, (node, near, energy) in enumerate(loader):
        net.train()
        optimizer.zero_grad()
        loss = huber(net(node, near), energy)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")
    net.eval()
    with torch.no_grad():
        errors = [(net(node, near) - energy).abs().mean().item() for node, near, energy in held_out]
    print(f"held-out absolute error {sum(errors) / len(errors):.4f}")


if __name__ == "__main__":
    run()
