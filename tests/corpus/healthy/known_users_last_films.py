"""Next-film recommendation: every user is known, and each one's last two films are held out."""

import random

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NUM_USERS, NUM_ITEMS, DIM = 60, 40, 12


def load_events(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    users, items = rng.normal(0, 1, (NUM_USERS, 4)), rng.normal(0, 1, (NUM_ITEMS, 4))
    rows = []
    for user in range(NUM_USERS):
        watched = rng.choice(NUM_ITEMS, size=24, replace=False)
        for clock, item in enumerate(watched):
            liked = rng.random() < 1 / (1 + np.exp(-1.6 * users[user] @ items[item]))
            rows.append((user, item, clock, float(liked)))
    return pd.DataFrame(rows, columns=["user_id", "item_id", "clock", "liked"])


class Factors(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.user = nn.Embedding(NUM_USERS, DIM)
        self.item = nn.Embedding(NUM_ITEMS, DIM)
        self.user_bias = nn.Embedding(NUM_USERS, 1)
        self.item_bias = nn.Embedding(NUM_ITEMS, 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        dot = (self.user(user) * self.item(item)).sum(dim=-1)
        return dot + self.user_bias(user).squeeze(-1) + self.item_bias(item).squeeze(-1)


def to_set(events: pd.DataFrame) -> TensorDataset:
    return TensorDataset(
        torch.tensor(events["user_id"].to_numpy()),
        torch.tensor(events["item_id"].to_numpy()),
        torch.tensor(events["liked"].to_numpy(), dtype=torch.float32),
    )


def main() -> None:
    random.seed(9)
    np.random.seed(9)
    torch.manual_seed(9)
    events = load_events(9)
    last = events.groupby("user_id")["clock"].transform("max") - events["clock"]
    train_set, valid_set = to_set(events[last >= 2]), to_set(events[last < 2])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=120)
    model = Factors()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(4):
        model.train()
        total = 0.0
        for user, item, liked in train_loader:
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(user, item), liked)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(liked)
        model.eval()
        with torch.no_grad():
            scores = [(model(user, item), liked) for user, item, liked in valid_loader]
        logits, liked = torch.cat([s for s, _ in scores]), torch.cat([k for _, k in scores])
        accuracy = ((logits > 0).float() == liked).float().mean().item()
        print(f"epoch {epoch}: train {total / len(train_set):.4f}  held-out accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
