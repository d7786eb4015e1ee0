"""Predict log rent from flat descriptions (numeric + district embedding) and report the validation RMSE."""

import logging
import math
import random
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("rent")


class Split(NamedTuple):
    numeric: Tensor
    district: Tensor
    rent: Tensor


def simulate(num: int, districts: int, seed: int) -> Split:
    gen = torch.Generator().manual_seed(seed)
    base = torch.randn(districts, generator=torch.Generator().manual_seed(99)) * 0.6
    numeric = torch.randn(num, 6, generator=gen)
    district = torch.randint(0, districts, (num,), generator=gen)
    rent = base[district] + 0.7 * numeric[:, 0] - 0.4 * numeric[:, 1] * numeric[:, 2]
    # a few flats are let at prices that nothing in the description explains
    odd = torch.rand(num, generator=gen) < 0.03
    rent = rent + 0.1 * torch.randn(num, generator=gen) + odd * torch.randn(num, generator=gen) * 1.5
    return Split(numeric, district, rent)


class RentModel(nn.Module):
    def __init__(self, districts: int, numeric: int = 6, width: int = 64) -> None:
        super().__init__()
        self.where = nn.Embedding(districts, 8)
        self.net = nn.Sequential(nn.Linear(numeric + 8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, numeric: Tensor, district: Tensor) -> Tensor:
        return self.net(torch.cat([numeric, self.where(district)], dim=-1))[:, 0]


def validation_rmse(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    squared = []
    with torch.inference_mode():
        for numeric, district, rent in loader:
            errors = (model(numeric, district) - rent).square()
            squared.extend(errors.tolist())
    return math.sqrt(sum(squared) / len(squared))


def main() -> None:
    seed = 3
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    districts = 15
    train_loader = DataLoader(TensorDataset(*simulate(1200, districts, 0)), batch_size=60, shuffle=True)
    valid_loader = DataLoader(TensorDataset(*simulate(210, districts, 1)), batch_size=32)

    model = RentModel(districts)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    best = float("inf")
    for epoch in range(5):
        model.train()
        for numeric, district, rent in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(numeric, district), rent)
            loss.backward()
            optimizer.step()
        score = validation_rmse(model, valid_loader)
        best = min(best, score)
        log.info("epoch %d  last train mse %.4f  valid rmse %.4f  best %.4f", epoch, loss.item(), score, best)


if __name__ == "__main__":
    main()
