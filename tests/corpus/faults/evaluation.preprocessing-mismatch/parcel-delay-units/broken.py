"""Will a parcel arrive late? A gated tabular network on depot records; two depots deliver training rows, a third is held out."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

COLUMNS = ("weight", "volume", "stops", "traffic", "rain", "distance", "shift")


@dataclass
class Records:
    table: dict[str, np.ndarray]
    late: np.ndarray


def depot(rng: np.random.Generator, rows: int) -> Records:
    table = {
        "weight": rng.gamma(4.0, 1.5, rows),
        "volume": rng.gamma(3.0, 0.02, rows),
        "stops": rng.integers(3, 30, rows).astype(float),
        "traffic": rng.uniform(0, 1, rows),
        "rain": rng.exponential(1.2, rows),
        "distance": rng.gamma(5.0, 4000.0, rows),  # metres, as the scanners report it
        "shift": rng.integers(0, 2, rows).astype(float),
    }
    score = 0.12 * (table["stops"] - 16) + 2.5 * (table["traffic"] - 0.5) + 0.12 * (table["distance"] / 1000 - 20)
    score += 0.5 * (table["rain"] - 1.2) * (table["shift"] - 0.5)
    return Records(table, (score + rng.logistic(0, 0.4, rows) > 0).astype(np.float32))


def stacked(records: Records) -> np.ndarray:
    return np.stack([records.table[name] for name in COLUMNS], axis=1)


def to_kilometres(records: Records) -> Records:
    return Records({**records.table, "distance": records.table["distance"] / 1000}, records.late)


class Gated(nn.Module):
    def __init__(self, inputs: int, width: int = 48) -> None:
        super().__init__()
        self.value = nn.Linear(inputs, width)
        self.gate = nn.Linear(inputs, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.value(x)) * torch.sigmoid(self.gate(x))).squeeze(-1)


def main() -> None:
    random.seed(14)
    np.random.seed(14)
    torch.manual_seed(14)
    rng = np.random.default_rng(14)
    north, south = to_kilometres(depot(rng, 700)), to_kilometres(depot(rng, 500))
    harbour = depot(rng, 300)

    x_train = np.concatenate([stacked(north), stacked(south)])
    mean, spread = x_train.mean(0), x_train.std(0)
    x_train = torch.tensor((x_train - mean) / spread, dtype=torch.float32)
    y_train = torch.from_numpy(np.concatenate([north.late, south.late]))
    x_held = torch.tensor((stacked(harbour) - mean) / spread, dtype=torch.float32)
    y_held = torch.from_numpy(harbour.late)

    model = Gated(len(COLUMNS))
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(5):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x_train)).split(60):
            loss = criterion(model(x_train[rows]), y_train[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            logits = model(x_held)
            accuracy = ((logits > 0).float() == y_held).float().mean().item()
            nll = criterion(logits, y_held).item()
        print(f"epoch {epoch}: train {total / len(x_train):.3f} harbour {nll:.3f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
