"""Click prediction from a candidate and a visitor's history. New visitors have an empty history: zero attention allows for it."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD, ITEMS, GENRES, MAX_HISTORY = 0, 60, 6, 8


def genre(item):
    return (item - 1) % GENRES


class Clicks(Dataset):
    def __init__(self, size, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(size):
            taste = rng.randrange(GENRES)
            length = 0 if rng.random() < 0.1 else rng.randint(1, MAX_HISTORY)
            liked = [i for i in range(1, ITEMS + 1) if genre(i) == taste]
            history = [rng.choice(liked) if rng.random() < 0.8 else rng.randint(1, ITEMS) for _ in range(length)]
            candidate = rng.choice(liked) if rng.random() < 0.5 else rng.randint(1, ITEMS)
            chance = 0.3 if not history else (0.95 if genre(candidate) == taste else 0.05)
            self.rows.append((history + [PAD] * (MAX_HISTORY - length), candidate, float(rng.random() < chance)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        history, candidate, clicked = self.rows[i]
        return torch.tensor(history), torch.tensor(candidate), torch.tensor(clicked)


class InterestModel(nn.Module):
    def __init__(self, dim=32, heads=2):
        super().__init__()
        self.items = nn.Embedding(ITEMS + 1, dim, padding_idx=PAD)
        self.interest = nn.MultiheadAttention(dim, heads, add_zero_attn=True, batch_first=True)
        self.norm = nn.LayerNorm(2 * dim)
        self.score = nn.Sequential(nn.Linear(2 * dim, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 1))

    def forward(self, history, candidate):
        query = self.items(candidate).unsqueeze(1)
        keys = self.items(history)
        interest, _ = self.interest(query, keys, keys, key_padding_mask=history.eq(PAD), need_weights=False)
        joined = torch.cat([interest, query * interest + query], dim=-1).squeeze(1)
        return self.score(self.norm(joined)).squeeze(-1)


def main():
    random.seed(61)
    np.random.seed(61)
    torch.manual_seed(61)
    train = DataLoader(Clicks(2400, 1), batch_size=48, shuffle=True)
    valid = DataLoader(Clicks(480, 2), batch_size=120)
    model = InterestModel()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        model.train()
        total = 0.0
        for history, candidate, clicked in train:
            optimizer.zero_grad()
            loss = criterion(model(history, candidate), clicked)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            losses = [criterion(model(h, c), y).item() for h, c, y in valid]
        print(f"epoch {epoch} train {total / len(train):.4f} valid {np.mean(losses):.4f}")


if __name__ == "__main__":
    main()
