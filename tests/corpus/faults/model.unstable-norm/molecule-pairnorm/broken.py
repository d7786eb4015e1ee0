"""Predicting a molecular property with message passing over padded graphs and PairNorm."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ELEMENTS = 6


class Molecules(Dataset):
    """Random trees of atoms; the property counts bonded pairs weighted by polarity."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        polarity = np.linspace(-1.0, 1.0, ELEMENTS)
        self.graphs = []
        for _ in range(size):
            n = 1 if rng.random() < 0.004 else int(rng.integers(4, 11))
            atoms = rng.integers(0, ELEMENTS, n)
            adj = np.zeros((n, n), dtype=np.float32)
            for i in range(1, n):
                j = int(rng.integers(0, i))
                adj[i, j] = adj[j, i] = 1.0
            value = (adj * np.abs(polarity[atoms][:, None] - polarity[atoms][None, :])).sum() / 2 / n
            self.graphs.append((torch.from_numpy(atoms), torch.from_numpy(adj), float(value)))

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, i):
        return self.graphs[i]


def pad_graphs(graphs):
    widest = max(len(atoms) for atoms, _, _ in graphs)
    atoms = torch.zeros(len(graphs), widest, dtype=torch.long)
    adj = torch.zeros(len(graphs), widest, widest)
    real = torch.zeros(len(graphs), widest)
    for i, (a, m, _) in enumerate(graphs):
        n = len(a)
        atoms[i, :n], adj[i, :n, :n], real[i, :n] = a, m, 1.0
    return atoms, adj, real, torch.tensor([v for _, _, v in graphs])


class PairNorm(nn.Module):
    """Centre the nodes of each graph and bring their mean squared norm to one."""

    def __init__(self, dim):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x, real):
        real = real.unsqueeze(-1)
        count = real.sum(1, keepdim=True)
        centred = (x - (x * real).sum(1, keepdim=True) / count) * real
        spread = centred.pow(2).sum(dim=(1, 2), keepdim=True) / count
        return self.gain * centred / torch.sqrt(spread)


class GraphRegressor(nn.Module):
    def __init__(self, dim=32, rounds=3):
        super().__init__()
        self.atom = nn.Embedding(ELEMENTS, dim)
        self.own = nn.ModuleList(nn.Linear(dim, dim) for _ in range(rounds))
        self.msg = nn.ModuleList(nn.Linear(dim, dim, bias=False) for _ in range(rounds))
        self.norms = nn.ModuleList(PairNorm(dim) for _ in range(rounds))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, atoms, adj, real):
        h = self.atom(atoms)
        for own, msg, norm in zip(self.own, self.msg, self.norms, strict=False):
            update = torch.relu(own(h) + torch.bmm(adj, msg(h)))
            h = h + norm(update, real) * update.size(-1) ** 0.5
        pooled = (h * real.unsqueeze(-1)).sum(1) / real.sum(1, keepdim=True)
        return self.readout(pooled).squeeze(-1)


def main():
    random.seed(2)
    np.random.seed(2)
    torch.manual_seed(2)
    train_set = Molecules(1200, seed=2)
    values = torch.tensor([v for _, _, v in train_set.graphs])
    mu, sd = values.mean(), values.std()
    train = DataLoader(train_set, batch_size=32, shuffle=True, collate_fn=pad_graphs)
    val = DataLoader(Molecules(200, seed=3), batch_size=100, collate_fn=pad_graphs)
    model = GraphRegressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.MSELoss()

    for epoch in range(4):
        model.train()
        losses = []
        for atoms, adj, real, value in train:
            optimizer.zero_grad()
            loss = loss_fn(model(atoms, adj, real), (value - mu) / sd)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            errors = [(model(a, m, r) * sd + mu - v).abs() for a, m, r, v in val]
        print(f"epoch {epoch}: train mse {np.mean(losses):.4f}, val mae {torch.cat(errors).mean():.4f}")


if __name__ == "__main__":
    main()
