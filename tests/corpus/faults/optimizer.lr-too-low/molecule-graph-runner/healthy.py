import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class RunConfig:
    hidden: int = 48
    rounds: int = 3
    batch_size: int = 32
    epochs: int = 4
    learning_rate: float = 3e-2
    momentum: float = 0.9
    seed: int = 21


class Molecules(Dataset):
    """Random sparse graphs; the class is which of three atom kinds has the most bonds."""

    def __init__(self, count, nodes=10, seed=0):
        rng = np.random.default_rng(seed)
        self.items = []
        while len(self.items) < count:
            kind = rng.integers(0, 3, nodes)
            upper = np.triu(rng.random((nodes, nodes)) < 0.25, 1)
            adj = (upper | upper.T).astype(np.float32)
            bonds = np.array([adj[kind == k].sum() for k in range(3)])
            best = int(bonds.argmax())
            if (bonds == bonds[best]).sum() > 1:
                continue
            self.items.append((kind, adj, best))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def stack(batch):
    kind, adj, target = zip(*batch)
    onehot = nn.functional.one_hot(torch.as_tensor(np.stack(kind)), 3).float()
    return onehot, torch.as_tensor(np.stack(adj)), torch.as_tensor(target)


class MessagePassing(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(3, cfg.hidden)
        self.message = nn.ModuleList(nn.Linear(cfg.hidden, cfg.hidden) for _ in range(cfg.rounds))
        self.update = nn.ModuleList(nn.Linear(2 * cfg.hidden, cfg.hidden) for _ in range(cfg.rounds))
        self.norm = nn.ModuleList(nn.LayerNorm(cfg.hidden) for _ in range(cfg.rounds))
        self.readout = nn.Linear(cfg.hidden, 3)

    def forward(self, atoms, adj):
        h = self.embed(atoms)
        for message, update, norm in zip(self.message, self.update, self.norm):
            incoming = torch.einsum("bij,bjc->bic", adj, message(h)) / 2.0
            h = norm(h + torch.relu(update(torch.cat([h, incoming], dim=-1))))
        return self.readout(h.mean(dim=1))


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        random.seed(cfg.seed)
        np.random.seed(cfg.seed)
        torch.manual_seed(cfg.seed)
        self.model = MessagePassing(cfg)
        self.criterion = nn.CrossEntropyLoss()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=cfg.learning_rate, momentum=cfg.momentum)
        self.train_loader = DataLoader(Molecules(960, seed=1), cfg.batch_size, shuffle=True, collate_fn=stack)
        self.val_loader = DataLoader(Molecules(200, seed=2), 100, collate_fn=stack)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            total, seen = 0.0, 0
            for atoms, adj, target in self.train_loader:
                loss = self.criterion(self.model(atoms, adj), target)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item() * len(target)
                seen += len(target)
            print(f"epoch {epoch}: train {total / seen:.4f} val acc {self.validate():.3f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        right = count = 0
        for atoms, adj, target in self.val_loader:
            right += (self.model(atoms, adj).argmax(-1) == target).sum().item()
            count += len(target)
        return right / count


if __name__ == "__main__":
    Runner(RunConfig()).fit()
