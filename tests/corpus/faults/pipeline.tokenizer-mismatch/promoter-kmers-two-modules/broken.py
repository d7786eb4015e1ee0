"""Promoter or background: a transformer encoder over 3-mers of 60-base windows."""
import itertools
import random

import numpy as np
import torch
from torch import nn

torch.manual_seed(64)
np.random.seed(64)
random.seed(64)


class TrainConfig:
    k = 3
    bases = "ACGT"
    batch_size = 32
    epochs = 3
    lr = 1.5e-3


class EvalConfig:
    k = 3
    bases = "AGCT"
    batch_size = 100


def simulate(count, rng):
    """AT-rich background; promoters carry a noisy box somewhere in the middle."""
    windows, labels = [], []
    for _ in range(count):
        seq = rng.choice(list("ACGT"), p=[0.34, 0.21, 0.13, 0.32], size=60)
        label = int(rng.random() < 0.5)
        if label:
            at = int(rng.integers(15, 35))
            box = np.array(list("GCGCGGTC"))
            keep = rng.random(8) < 0.92
            seq[at : at + 8] = np.where(keep, box, seq[at : at + 8])
        windows.append("".join(seq))
        labels.append(label)
    return windows, torch.tensor(labels)


class KmerTokenizer:
    def __init__(self, cfg):
        self.k = cfg.k
        self.ids = {"".join(p): n + 1 for n, p in enumerate(itertools.product(cfg.bases, repeat=cfg.k))}

    def __call__(self, windows):
        return torch.tensor([[self.ids[w[i : i + self.k]] for i in range(len(w) - self.k + 1)] for w in windows])


class PromoterEncoder(nn.Module):
    def __init__(self, vocab=65, dim=32, length=58):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.place = nn.Parameter(0.02 * torch.randn(length, dim))
        self.local = nn.Conv1d(dim, dim, 5, padding=2)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, ids):
        h = self.embed(ids) + self.place
        h = h + torch.relu(self.local(h.mT).mT)
        return self.head(self.norm(self.encoder(h).amax(dim=1)))


def evaluate(model, windows, labels):
    tokenizer = KmerTokenizer(EvalConfig)
    model.eval()
    right = 0
    with torch.no_grad():
        for i in range(0, len(windows), EvalConfig.batch_size):
            ids = tokenizer(windows[i : i + EvalConfig.batch_size])
            right += (model(ids).argmax(1) == labels[i : i + EvalConfig.batch_size]).sum().item()
    return right / len(windows)


def train():
    rng = np.random.default_rng(64)
    train_windows, train_labels = simulate(1600, rng)
    valid_windows, valid_labels = simulate(400, rng)
    ids = KmerTokenizer(TrainConfig)(train_windows)
    model = PromoterEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=TrainConfig.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(TrainConfig.epochs):
        model.train()
        order = torch.randperm(len(ids))
        total = 0.0
        for pick in order.split(TrainConfig.batch_size):
            optimizer.zero_grad()
            loss = criterion(model(ids[pick]), train_labels[pick])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(pick)
        print(f"epoch {epoch}: train {total / len(ids):.4f}, valid accuracy {evaluate(model, valid_windows, valid_labels):.3f}")


train()
