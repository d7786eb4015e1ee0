"""Rating prediction from a user's history with cross-attention; what is asked for is left out of the history."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(8)
torch.manual_seed(8)

N_ITEMS, HIST = 50, 8
taste = np.random.randn(N_ITEMS, 4).astype("float32")


def build(n, seed):
    rng = np.random.default_rng(seed)
    history = np.full((n, HIST), -1, dtype="int64")
    asked = rng.integers(0, N_ITEMS, n)
    score = np.zeros(n, dtype="float32")
    for i in range(n):
        k = int(rng.integers(1, HIST + 1))
        likes = rng.integers(0, N_ITEMS, k)
        if rng.random() < 0.1:
            likes[0] = asked[i]
        history[i, :k] = likes
        profile = taste[likes].mean(0)
        score[i] = profile[0] + taste[asked[i]][1] + 0.05 * rng.normal()
    score = (score - score.mean()) / score.std()
    return TensorDataset(torch.from_numpy(history), torch.from_numpy(asked), torch.from_numpy(score.astype("float32")))


class Recommender(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.item = nn.Embedding(N_ITEMS + 1, dim, padding_idx=0)
        self.nobody = nn.Parameter(torch.randn(dim) * 0.02)
        self.attend = nn.MultiheadAttention(dim, 4)
        self.norm = nn.LayerNorm(dim)
        self.score = nn.Sequential(nn.Linear(2 * dim, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, history, asked):
        absent = (history < 0) | (history == asked[:, None])
        keys = self.item(history + 1)
        query = self.item(asked + 1) + self.nobody
        keys = keys.transpose(0, 1)
        mixed, _ = self.attend(query.unsqueeze(0), keys, keys, key_padding_mask=absent)
        joined = torch.cat([self.norm(mixed.squeeze(0)), query], dim=-1)
        return self.score(joined).squeeze(-1)


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        error = [((model(h, a) - y) ** 2).sum().item() for h, a, y in loader]
    return sum(error) / len(loader.dataset)


train = DataLoader(build(1600, 1), batch_size=32, shuffle=True)
valid = DataLoader(build(300, 2), batch_size=100)
model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
mse = nn.MSELoss()
for epoch in range(2):
    model.train()
    running = 0.0
    for history, asked, score in train:
        optimizer.zero_grad()
        loss = mse(model(history, asked), score)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch} train {running / len(train):.3f} valid {evaluate(model, valid):.3f}")
