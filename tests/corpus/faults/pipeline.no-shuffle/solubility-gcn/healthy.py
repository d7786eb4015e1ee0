"""Graph convolution regressor for aqueous solubility; molecules as padded dense graphs."""

import logging
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("solubility")

MAX_ATOMS = 12
ELEMENTS = 5
POLARITY = np.array([-0.4, 0.9, 1.1, -0.8, 0.3])


def random_molecule(rng):
    atoms = rng.integers(5, MAX_ATOMS + 1)
    kinds = rng.choice(ELEMENTS, size=atoms, p=[0.5, 0.15, 0.15, 0.1, 0.1])
    bonds = np.zeros((MAX_ATOMS, MAX_ATOMS), dtype=np.float32)
    for atom in range(1, atoms):
        other = rng.integers(max(0, atom - 3), atom)
        bonds[atom, other] = bonds[other, atom] = 1.0
    contact = sum(POLARITY[kinds[i]] * POLARITY[kinds[j]] for i, j in zip(*np.nonzero(np.triu(bonds)), strict=True))
    value = POLARITY[kinds].sum() + 0.3 * contact - 0.15 * atoms + rng.normal(0, 0.1)
    return kinds, bonds, value


def write_table(path, count, seed):
    rng = np.random.default_rng(seed)
    molecules = sorted((random_molecule(rng) for _ in range(count)), key=lambda m: m[2])
    kinds = np.full((count, MAX_ATOMS), -1)
    for row, molecule in enumerate(molecules):
        kinds[row, : len(molecule[0])] = molecule[0]
    np.savez(path, kinds=kinds, bonds=np.stack([m[1] for m in molecules]), value=np.array([m[2] for m in molecules]))


class Molecules(Dataset):
    def __init__(self, path):
        table = np.load(path)
        kinds = torch.from_numpy(table["kinds"])
        self.mask = (kinds >= 0).float()
        self.nodes = nn.functional.one_hot(kinds.clamp(min=0), ELEMENTS).float() * self.mask[..., None]
        bonds = torch.from_numpy(table["bonds"]) + torch.eye(MAX_ATOMS) * self.mask[..., None]
        degree = bonds.sum(-1).clamp(min=1)
        self.adjacency = bonds / torch.sqrt(degree[:, :, None] * degree[:, None, :])
        value = torch.from_numpy(table["value"]).float()
        self.value = (value - value.mean()) / value.std()

    def __len__(self):
        return len(self.value)

    def __getitem__(self, index):
        return self.nodes[index], self.adjacency[index], self.mask[index], self.value[index]


class GCN(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.first = nn.Linear(ELEMENTS, width)
        self.second = nn.Linear(width, width)
        self.readout = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, nodes, adjacency, mask):
        h = torch.relu(adjacency @ self.first(nodes))
        h = torch.relu(adjacency @ self.second(h))
        pooled = (h * mask[..., None]).sum(1) / MAX_ATOMS**0.5
        return self.readout(pooled).squeeze(-1)


def train():
    torch.manual_seed(7)
    np.random.seed(7)
    path = Path("molecules.npz")
    write_table(path, 900, seed=7)
    data = Molecules(path)
    held_out = set(range(0, len(data), 6))
    train_set = Subset(data, [i for i in range(len(data)) if i not in held_out])
    val_set = Subset(data, sorted(held_out))
    train_loader = DataLoader(train_set, batch_size=25, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=50)

    model = GCN()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    for epoch in range(6):
        model.train()
        total = 0.0
        for nodes, adjacency, mask, value in train_loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(nodes, adjacency, mask), value)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(value)
        model.eval()
        with torch.no_grad():
            errors = [((model(n, a, m) - v) ** 2).sum().item() for n, a, m, v in val_loader]
        log.info("epoch %d train mse %.4f val mse %.4f", epoch, total / len(train_set), sum(errors) / len(val_set))


if __name__ == "__main__":
    train()
