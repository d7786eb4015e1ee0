"""Spoken keyword classifier on synthetic log-mel features."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


@dataclass
class Config:
    n_keywords: int = 12
    n_mels: int = 20
    frames: int = 32
    clips_per_keyword: int = 80
    hidden: int = 48
    batch_size: int = 48
    epochs: int = 6
    lr: float = 2e-3
    seed: int = 7


def synthesise(cfg: Config):
    """Every keyword is a pair of formant tracks that glide across the clip."""
    rng = np.random.default_rng(cfg.seed)
    starts = rng.uniform(2, cfg.n_mels - 3, size=(cfg.n_keywords, 2))
    ends = rng.uniform(2, cfg.n_mels - 3, size=(cfg.n_keywords, 2))
    mel = np.arange(cfg.n_mels)[:, None]
    t = np.linspace(0, 1, cfg.frames)[None, :]
    clips, words = [], []
    for k in range(cfg.n_keywords):
        for _ in range(cfg.clips_per_keyword):
            spec = rng.normal(0, 0.6, size=(cfg.n_mels, cfg.frames))
            for f in range(2):
                track = starts[k, f] + (ends[k, f] - starts[k, f]) * t + rng.normal(0, 0.4)
                spec += 2.5 * np.exp(-0.5 * ((mel - track) / 1.2) ** 2)
            clips.append((spec - spec.mean()) / spec.std())
            words.append(k)
    x = torch.tensor(np.stack(clips), dtype=torch.float32)
    return TensorDataset(x, torch.tensor(words))


class KeywordNet(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.frontend = nn.Sequential(
            nn.Conv1d(cfg.n_mels, cfg.hidden, 5, padding=2),
            nn.BatchNorm1d(cfg.hidden),
            nn.ReLU(),
            nn.Conv1d(cfg.hidden, cfg.hidden, 5, stride=2, padding=2),
            nn.BatchNorm1d(cfg.hidden),
            nn.ReLU(),
        )
        self.gru = nn.GRU(cfg.hidden, cfg.hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(2 * cfg.hidden, cfg.n_keywords)

    def forward(self, spec):
        h = self.frontend(spec).transpose(1, 2)
        h, _ = self.gru(h)
        return self.out(self.drop(h.mean(dim=1))).softmax(dim=-1)


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        data = synthesise(cfg)
        n_val = len(data) // 5
        train, val = random_split(data, [len(data) - n_val, n_val], generator=torch.Generator().manual_seed(cfg.seed))
        self.train_loader = DataLoader(train, batch_size=cfg.batch_size, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val, batch_size=96)
        self.model = KeywordNet(cfg)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for spec, word in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(spec), word)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hits = seen = 0
        for spec, word in self.val_loader:
            hits += (self.model(spec).argmax(dim=1) == word).sum().item()
            seen += len(word)
        return hits / seen

    def fit(self):
        for epoch in range(self.cfg.epochs):
            loss = self.train_epoch()
            print(f"epoch {epoch + 1}: train loss {loss:.4f}  val acc {self.validate():.3f}")


if __name__ == "__main__":
    cfg = Config()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    Trainer(cfg).fit()
