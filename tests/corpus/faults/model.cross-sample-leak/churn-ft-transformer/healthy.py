"""FT-Transformer for a tabular churn-like problem: one token per column, a learned readout token."""

import random

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_table(n, seed):
    rng = np.random.default_rng(seed)
    numeric = rng.normal(size=(n, 6))
    numeric[:, 3] = np.exp(0.5 * numeric[:, 3])
    numeric[:, 4] = numeric[:, 4] * 40 + 300
    plan = rng.integers(0, 5, size=n)
    region = rng.integers(0, 7, size=n)
    score = 1.6 * numeric[:, 0] - 1.2 * numeric[:, 1] * (plan > 2) + 0.9 * np.sin(2 * numeric[:, 2]) + 0.3 * (region - 3)
    churn = (score + 0.4 * rng.normal(size=n) > 0).astype(np.float32)
    return numeric.astype(np.float32), np.stack([plan, region], 1), churn


class FeatureTokenizer(nn.Module):
    def __init__(self, num_numeric, cardinalities, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_numeric, dim))
        self.bias = nn.Parameter(torch.empty(num_numeric, dim))
        nn.init.uniform_(self.weight, -(dim**-0.5), dim**-0.5)
        nn.init.uniform_(self.bias, -(dim**-0.5), dim**-0.5)
        self.categories = nn.ModuleList([nn.Embedding(c, dim) for c in cardinalities])
        for table in self.categories:
            nn.init.uniform_(table.weight, -(dim**-0.5), dim**-0.5)
        self.readout = nn.Parameter(torch.randn(dim) * dim**-0.5)

    def forward(self, numeric, categorical):
        tokens = [self.readout.expand(len(numeric), 1, -1), numeric.unsqueeze(-1) * self.weight + self.bias]
        for j, table in enumerate(self.categories):
            tokens.append(table(categorical[:, j]).unsqueeze(1))
        return torch.cat(tokens, dim=1)


class FTTransformer(nn.Module):
    def __init__(self, num_numeric, cardinalities, dim=48, depth=2, heads=4):
        super().__init__()
        self.tokenizer = FeatureTokenizer(num_numeric, cardinalities, dim)
        layer = nn.TransformerEncoderLayer(
            d_model=dim,
            nhead=heads,
            dim_feedforward=2 * dim,
            dropout=0.1,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=depth, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.ReLU(), nn.Linear(dim, 1))

    def forward(self, numeric, categorical):
        tokens = self.tokenizer(numeric, categorical)
        encoded = self.encoder(tokens)
        return self.head(encoded[:, 0]).squeeze(-1)


def main():
    set_seed(2024)
    numeric, categorical, churn = make_table(2400, seed=4)
    mean, std = numeric[:1900].mean(0), numeric[:1900].std(0)
    numeric = (numeric - mean) / std
    tensors = [torch.from_numpy(a) for a in (numeric, categorical, churn)]
    train = DataLoader(TensorDataset(*(t[:1900] for t in tensors)), batch_size=64, shuffle=True)
    valid = DataLoader(TensorDataset(*(t[1900:] for t in tensors)), batch_size=100)

    model = FTTransformer(numeric.shape[1], (5, 7))
    no_decay = [p for n, p in model.named_parameters() if p.ndim < 2 or "tokenizer" in n]
    decay = [p for n, p in model.named_parameters() if p.ndim >= 2 and "tokenizer" not in n]
    optimizer = optim.AdamW([{"params": decay, "weight_decay": 1e-4}, {"params": no_decay, "weight_decay": 0.0}], lr=1e-3)
    bce = nn.BCEWithLogitsLoss()

    for epoch in range(4):
        model.train()
        running = 0.0
        for x_num, x_cat, y in train:
            optimizer.zero_grad()
            loss = bce(model(x_num, x_cat), y)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(y)
        model.eval()
        correct = 0
        with torch.no_grad():
            for x_num, x_cat, y in valid:
                correct += ((model(x_num, x_cat) > 0).float() == y).sum().item()
        print(f"epoch {epoch + 1}: loss {running / 1900:.4f}  valid acc {correct / 500:.3f}")


if __name__ == "__main__":
    main()
