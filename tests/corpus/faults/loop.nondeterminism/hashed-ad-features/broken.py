"""Click prediction on categorical ad logs: feature strings go into a fixed number of buckets, then a factorisation machine."""

import math
import random
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

BUCKETS = 512
FIELDS = {"site": 40, "device": 6, "hour": 24, "campaign": 30, "region": 12}


def bucket(name: str, value: int) -> int:
    return hash(f"{name}={value}") % BUCKETS


class AdLog(Dataset):
    def __init__(self, rows: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        truth = np.random.default_rng(0)
        pull = {name: truth.normal(0, 0.8, size) for name, size in FIELDS.items()}
        pair = truth.normal(0, 0.8, (FIELDS["device"], FIELDS["region"]))
        values = {name: rng.integers(0, size, rows) for name, size in FIELDS.items()}
        score = sum(pull[name][values[name]] for name in FIELDS) + pair[values["device"], values["region"]]
        self.click = torch.from_numpy((rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.float32))
        self.ids = torch.tensor([[bucket(name, int(values[name][i])) for name in FIELDS] for i in range(rows)])

    def __len__(self) -> int:
        return len(self.click)

    def __getitem__(self, i: int):
        return self.ids[i], self.click[i]


class FactorisationMachine(nn.Module):
    def __init__(self, dim: int = 8) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(()))
        self.linear = nn.Embedding(BUCKETS, 1)
        self.factors = nn.Embedding(BUCKETS, dim)
        nn.init.normal_(self.linear.weight, std=0.01)
        nn.init.normal_(self.factors.weight, std=1 / math.sqrt(BUCKETS))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        v = self.factors(ids)
        crossed = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(-1)
        return self.bias + self.linear(ids).sum((1, 2)) + crossed


def log_loss(model: nn.Module, data: AdLog) -> float:
    model.eval()
    with torch.no_grad():
        return F.binary_cross_entropy_with_logits(model(data.ids), data.click).item()


def main() -> None:
    random.seed(29)
    np.random.seed(29)
    torch.manual_seed(29)
    train, test = AdLog(3200, 1), AdLog(600, 2)
    print(f"log checksum {zlib.crc32(train.click.numpy().tobytes()):08x}")
    loader = DataLoader(train, batch_size=80, shuffle=True)
    model = FactorisationMachine()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        model.train()
        for ids, click in loader:
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(ids), click)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: train {log_loss(model, train):.4f} test {log_loss(model, test):.4f}")


if __name__ == "__main__":
    main()
