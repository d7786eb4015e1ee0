"""Message passing on batches of molecules that are merged into one big graph."""

import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

ATOM_KINDS = 5


class Molecules(Dataset):
    """The property is the share of bonds that join two atoms of the same kind."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.graphs = []
        for _ in range(size):
            n = int(rng.integers(6, 14))
            kinds = rng.integers(0, ATOM_KINDS, size=n)
            bonds = []
            for atom in range(1, n):
                other = int(rng.integers(0, atom))
                same = np.flatnonzero(kinds[:atom] == kinds[atom])
                if rng.random() < 0.5 and len(same):
                    other = int(rng.choice(same))
                bonds += [(atom, other), (other, atom)]
            bonds = np.array(bonds).T
            target = float((kinds[bonds[0]] == kinds[bonds[1]]).mean())
            self.graphs.append((torch.from_numpy(kinds), torch.from_numpy(bonds), (target - 0.45) / 0.2))

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, i):
        return self.graphs[i]


def merge(graphs):
    atoms, edges, owner, targets = [], [], [], []
    offset = 0
    for number, (kinds, bonds, target) in enumerate(graphs):
        atoms.append(kinds)
        edges.append(bonds + offset)
        owner.append(torch.full((len(kinds),), number))
        targets.append(target)
        offset += len(kinds)
    return torch.cat(atoms), torch.cat(edges, dim=1), torch.cat(owner), torch.tensor(targets, dtype=torch.float32)


class MessagePassing(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.update = nn.GRUCell(dim, dim)

    def forward(self, h, edges):
        source, target = edges
        messages = self.message(torch.cat([h[source], h[target]], dim=-1))
        total = torch.zeros_like(h).index_add(0, target, messages)
        degree = torch.zeros(len(h), 1).index_add(0, target, torch.ones(len(target), 1)).clamp(min=1.0)
        return self.update(total / degree, h)


class PropertyNet(nn.Module):
    def __init__(self, dim=32, rounds=2):
        super().__init__()
        self.atoms = nn.Embedding(ATOM_KINDS, dim)
        self.rounds = nn.ModuleList(MessagePassing(dim) for _ in range(rounds))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, atoms, edges, owner, num_graphs):
        h = self.atoms(atoms)
        for layer in self.rounds:
            h = layer(h, edges)
        pooled = torch.zeros(num_graphs, h.size(1)).index_add(0, owner, h)
        counts = torch.bincount(owner, minlength=num_graphs).unsqueeze(1)
        return self.readout(pooled / counts).squeeze(-1)


def main():
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)
    train = DataLoader(Molecules(960, 1), batch_size=32, shuffle=True, collate_fn=merge)
    valid = DataLoader(Molecules(192, 2), batch_size=64, collate_fn=merge)
    net = PropertyNet()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(6):
        net.train()
        train_loss = 0.0
        for atoms, edges, owner, targets in train:
            optimizer.zero_grad()
            loss = criterion(net(atoms, edges, owner, len(targets)), targets)
            loss.backward()
            optimizer.step()
            train_loss += loss.item() / len(train)
        net.eval()
        with torch.no_grad():
            val_loss = np.mean([criterion(net(a, e, o, len(t)), t).item() for a, e, o, t in valid])
        print(f"epoch {epoch}: train {train_loss:.4f} valid {val_loss:.4f}")


if __name__ == "__main__":
    main()
