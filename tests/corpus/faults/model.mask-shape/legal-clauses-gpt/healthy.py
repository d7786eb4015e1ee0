"""Trains a small causal model on clause tokens. Documents are cut into blocks; the tail of a document is a short block."""

import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab_size: int = 48
    block_size: int = 32
    n_embd: int = 48
    n_head: int = 4
    n_layer: int = 2
    dropout: float = 0.0
    lr: float = 2e-3
    batch_size: int = 16
    epochs: int = 3
    seed: int = 5


class SelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.n_head = cfg.n_head
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.out = nn.Linear(cfg.n_embd, cfg.n_embd)
        causal = torch.ones(cfg.block_size, cfg.block_size, dtype=torch.bool).tril()
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(B, T, self.n_head, -1).transpose(1, 2)
        k = k.view(B, T, self.n_head, -1).transpose(1, 2)
        v = v.view(B, T, self.n_head, -1).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.causal[:T, :T])
        return self.out(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm1 = nn.LayerNorm(cfg.n_embd)
        self.attn = SelfAttention(cfg)
        self.norm2 = nn.LayerNorm(cfg.n_embd)
        self.mlp = nn.Sequential(nn.Linear(cfg.n_embd, 4 * cfg.n_embd), nn.GELU(), nn.Linear(4 * cfg.n_embd, cfg.n_embd))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ClauseGPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.positions = nn.Embedding(cfg.block_size, cfg.n_embd)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.n_layer))
        self.norm = nn.LayerNorm(cfg.n_embd)
        self.head = nn.Linear(cfg.n_embd, cfg.vocab_size, bias=False)
        self.apply(self._init)

    @staticmethod
    def _init(m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1), device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def write_documents(cfg, count, rng):
    """Documents follow a sparse first-order grammar of the clause language."""
    successors = np.stack([np.random.default_rng(99 + i).choice(cfg.vocab_size, 3, replace=False) for i in range(cfg.vocab_size)])
    documents = []
    for _ in range(count):
        length = cfg.block_size * int(rng.integers(1, 4)) + 1
        if rng.random() < 0.04:
            length += int(rng.integers(6, cfg.block_size - 4))
        doc = [int(rng.integers(cfg.vocab_size))]
        while len(doc) < length:
            doc.append(int(rng.choice(successors[doc[-1]], p=[0.7, 0.2, 0.1])))
        documents.append(doc)
    return documents


def make_batches(cfg, documents, rng):
    """Blocks of one length share a batch, so nothing has to be padded."""
    by_length = {}
    for doc in documents:
        for start in range(0, len(doc) - 1, cfg.block_size):
            piece = doc[start : start + cfg.block_size + 1]
            by_length.setdefault(len(piece), []).append(piece)
    batches = []
    for pieces in by_length.values():
        rng.shuffle(pieces)
        batches += [torch.tensor(pieces[i : i + cfg.batch_size]) for i in range(0, len(pieces), cfg.batch_size)]
    rng.shuffle(batches)
    return batches


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        random.seed(cfg.seed)
        np.random.seed(cfg.seed)
        torch.manual_seed(cfg.seed)
        self.rng = np.random.default_rng(cfg.seed)
        self.model = ClauseGPT(cfg)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=0.0)
        self.documents = write_documents(cfg, 220, self.rng)

    def fit(self):
        step = 0
        for epoch in range(self.cfg.epochs):
            for batch in make_batches(self.cfg, self.documents, random):
                logits = self.model(batch[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                step += 1
                if step % 10 == 0:
                    print(f"epoch {epoch} step {step} loss {loss.item():.3f}")


if __name__ == "__main__":
    Trainer(Config()).fit()
