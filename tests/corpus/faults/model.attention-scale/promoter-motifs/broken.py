"""Promoter detection in DNA: hand-written multi-head attention encoder over nucleotide k-mers."""
import random
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class ModelConfig:
    vocab_size: int = 5  # A C G T + CLS
    d_model: int = 128
    n_heads: int = 2
    n_layers: int = 2
    d_ff: int = 192
    max_len: int = 41
    dropout: float = 0.1


@dataclass
class TrainConfig:
    lr: float = 1e-3
    batch_size: int = 32
    epochs: int = 5
    seed: int = 5
    model: ModelConfig = field(default_factory=ModelConfig)


class Promoters(Dataset):
    MOTIFS = ("TATAAT", "TTGACA")

    def __init__(self, n, seed, length=40):
        rng = random.Random(seed)
        self.items = []
        for _ in range(n):
            seq = [rng.choice("ACGT") for _ in range(length)]
            label = rng.randrange(3)
            if label:
                motif = self.MOTIFS[label - 1]
                at = rng.randrange(length - len(motif))
                seq[at : at + len(motif)] = motif
            self.items.append(([4] + ["ACGT".index(c) for c in seq], label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        seq, label = self.items[i]
        return torch.tensor(seq), label


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.n_heads, self.d_head = cfg.n_heads, cfg.d_model // cfg.n_heads
        self.w_q = nn.Linear(cfg.d_model, cfg.d_model)
        self.w_k = nn.Linear(cfg.d_model, cfg.d_model)
        self.w_v = nn.Linear(cfg.d_model, cfg.d_model)
        self.w_o = nn.Linear(cfg.d_model, cfg.d_model)
        for layer in (self.w_q, self.w_k, self.w_v, self.w_o):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        self.dropout = nn.Dropout(cfg.dropout)

    def split(self, x):
        b, t, _ = x.shape
        return x.view(b, t, self.n_heads, self.d_head).transpose(1, 2)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.split(self.w_q(x)), self.split(self.w_k(x)), self.split(self.w_v(x))
        scores = torch.matmul(q, k.transpose(-2, -1))
        attn = self.dropout(torch.softmax(scores, dim=-1))
        out = torch.matmul(attn, v).transpose(1, 2).contiguous().view(b, t, d)
        return self.w_o(out)


class EncoderLayer(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.attn = MultiHeadSelfAttention(cfg)
        self.ff = nn.Sequential(nn.Linear(cfg.d_model, cfg.d_ff), nn.GELU(), nn.Linear(cfg.d_ff, cfg.d_model))
        self.norm1, self.norm2 = nn.LayerNorm(cfg.d_model), nn.LayerNorm(cfg.d_model)
        self.dropout = nn.Dropout(cfg.dropout)

    def forward(self, x):
        x = x + self.dropout(self.attn(self.norm1(x)))
        return x + self.dropout(self.ff(self.norm2(x)))


class PromoterEncoder(nn.Module):
    def __init__(self, cfg: ModelConfig, num_classes=3):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab_size, cfg.d_model)
        self.positions = nn.Parameter(torch.randn(1, cfg.max_len, cfg.d_model) * 0.02)
        self.kmers = nn.Conv1d(cfg.d_model, cfg.d_model, 7, padding=3)
        self.layers = nn.ModuleList(EncoderLayer(cfg) for _ in range(cfg.n_layers))
        self.norm = nn.LayerNorm(cfg.d_model)
        self.head = nn.Linear(cfg.d_model, num_classes)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions[:, : ids.size(1)]
        x = x + torch.relu(self.kmers(x.transpose(1, 2))).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    loss_sum, hits, count = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for ids, labels in loader:
            logits = model(ids)
            loss = criterion(logits, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            loss_sum += loss.item() * len(labels)
            hits += (logits.argmax(-1) == labels).sum().item()
            count += len(labels)
    return loss_sum / count, hits / count


if __name__ == "__main__":
    cfg = TrainConfig()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    train_loader = DataLoader(Promoters(640, 1), cfg.batch_size, shuffle=True)
    valid_loader = DataLoader(Promoters(192, 2), 64)
    model = PromoterEncoder(cfg.model)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(cfg.epochs):
        tr = run_epoch(model, train_loader, criterion, optimizer)
        va = run_epoch(model, valid_loader, criterion)
        print(f"epoch {epoch}: train loss {tr[0]:.4f} acc {tr[1]:.3f} | valid loss {va[0]:.4f} acc {va[1]:.3f}")
