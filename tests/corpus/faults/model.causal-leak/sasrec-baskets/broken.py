"""SASRec-like next item recommendation with sampled negatives."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

NUM_ITEMS = 150
MAX_LEN = 20
HIDDEN = 40


def simulate_histories(num_users, rng):
    """Items live on a ring of themes; a user mostly walks to a neighbouring item of the same theme."""
    histories = []
    for _ in range(num_users):
        item = int(rng.integers(1, NUM_ITEMS + 1))
        history = [item]
        for _ in range(MAX_LEN):
            if rng.random() < 0.85:
                item = (item - 1 + int(rng.integers(1, 4))) % NUM_ITEMS + 1
            else:
                item = int(rng.integers(1, NUM_ITEMS + 1))
            history.append(item)
        histories.append(history)
    return np.array(histories)


class SequenceData(Dataset):
    def __init__(self, histories):
        self.histories = histories

    def __len__(self):
        return len(self.histories)

    def __getitem__(self, user):
        history = self.histories[user]
        negatives = np.random.randint(1, NUM_ITEMS + 1, size=MAX_LEN)
        return torch.from_numpy(history[:-1]), torch.from_numpy(history[1:]), torch.from_numpy(negatives)


class FeedForward(nn.Module):
    def __init__(self, hidden, dropout):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, hidden))

    def forward(self, x):
        return self.net(x)


class SASRec(nn.Module):
    def __init__(self, hidden=HIDDEN, heads=2, blocks=2, dropout=0.1):
        super().__init__()
        self.item_emb = nn.Embedding(NUM_ITEMS + 1, hidden, padding_idx=0)
        self.pos_emb = nn.Embedding(MAX_LEN, hidden)
        nn.init.normal_(self.item_emb.weight, std=0.05)
        nn.init.normal_(self.pos_emb.weight, std=0.05)
        self.drop = nn.Dropout(dropout)
        self.attn_norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(blocks))
        self.attns = nn.ModuleList(nn.MultiheadAttention(hidden, heads, dropout, batch_first=True) for _ in range(blocks))
        self.ffn_norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(blocks))
        self.ffns = nn.ModuleList(FeedForward(hidden, dropout) for _ in range(blocks))
        self.last_norm = nn.LayerNorm(hidden)

    def encode(self, seq):
        length = seq.size(1)
        x = self.drop(self.item_emb(seq) + self.pos_emb.weight[:length])
        blocked = torch.triu(torch.ones(length, length, dtype=torch.bool, device=seq.device), diagonal=2)
        for norm_a, attn, norm_f, ffn in zip(self.attn_norms, self.attns, self.ffn_norms, self.ffns, strict=False):
            q = norm_a(x)
            attended, _ = attn(q, q, q, attn_mask=blocked, need_weights=False)
            x = x + attended
            x = x + ffn(norm_f(x))
        return self.last_norm(x)

    def forward(self, seq, positives, negatives):
        h = self.encode(seq)
        return (h * self.item_emb(positives)).sum(-1), (h * self.item_emb(negatives)).sum(-1)


@torch.no_grad()
def hit_at_10(model, histories):
    model.eval()
    seq = torch.from_numpy(histories[:, :-1])
    scores = model.encode(seq)[:, -1] @ model.item_emb.weight[1:].T
    top = scores.topk(10).indices + 1
    return (top == torch.from_numpy(histories[:, -1:])).any(1).float().mean().item()


def main():
    seed = 2024
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)

    train, held_out = simulate_histories(1000, rng), simulate_histories(200, rng)
    loader = DataLoader(SequenceData(train), batch_size=50, shuffle=True)
    model = SASRec()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    for epoch in range(1, 9):
        model.train()
        total = 0.0
        for seq, positives, negatives in loader:
            pos, neg = model(seq, positives, negatives)
            loss = F.binary_cross_entropy_with_logits(pos, torch.ones_like(pos))
            loss = loss + F.binary_cross_entropy_with_logits(neg, torch.zeros_like(neg))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}  hit@10 {hit_at_10(model, held_out):.3f}")


if __name__ == "__main__":
    main()
