"""Which queue does a support chat belong to? Transformer encoder, the first token carries the summary."""
import random
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD, CLS = 0, 1


@dataclass
class Settings:
    vocab: int = 120
    queues: int = 4
    dim: int = 32
    heads: int = 4
    layers: int = 2
    longest: int = 28
    lr: float = 2e-3
    epochs: int = 4
    batch: int = 32
    seed: int = 17
    betas: tuple = field(default=(0.9, 0.99))


class Chats(Dataset):
    def __init__(self, settings, count, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(count):
            queue = int(rng.integers(settings.queues))
            length = int(rng.integers(4, settings.longest - 1))
            general = rng.integers(2, 80, size=length)
            topical = rng.integers(80 + 10 * queue, 90 + 10 * queue, size=length)
            words = np.where(rng.random(length) < 0.2, topical, general)
            self.rows.append((torch.from_numpy(np.concatenate([[CLS], words])), queue))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    width = max(len(ids) for ids, _ in rows)
    ids = torch.stack([F.pad(ids, (width - len(ids), 0), value=PAD) for ids, _ in rows])
    return {"ids": ids, "keep": ids.ne(PAD), "queue": torch.tensor([q for _, q in rows])}


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm_a, self.norm_b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.merge = nn.Linear(dim, dim)
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, keep):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None, None, :])
        x = x + self.merge(seen.transpose(1, 2).reshape(b, t, d))
        return x + self.feed(self.norm_b(x))


class QueueClassifier(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.tokens = nn.Embedding(s.vocab, s.dim, padding_idx=PAD)
        self.places = nn.Embedding(s.longest, s.dim)
        self.blocks = nn.ModuleList(Block(s.dim, s.heads) for _ in range(s.layers))
        self.norm = nn.LayerNorm(s.dim)
        self.queue = nn.Linear(s.dim, s.queues)

    def forward(self, ids, keep):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, keep)
        return self.queue(self.norm(x)[:, 0])


def main():
    s = Settings()
    random.seed(s.seed)
    np.random.seed(s.seed)
    torch.manual_seed(s.seed)
    train = DataLoader(Chats(s, 960, s.seed), s.batch, shuffle=True, collate_fn=collate)
    test = DataLoader(Chats(s, 256, s.seed + 1), 64, collate_fn=collate)
    model = QueueClassifier(s)
    optimizer = torch.optim.Adam(model.parameters(), lr=s.lr, betas=s.betas)
    for epoch in range(s.epochs):
        model.train()
        total = 0.0
        for batch in train:
            loss = F.cross_entropy(model(batch["ids"], batch["keep"]), batch["queue"])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        right = 0
        with torch.no_grad():
            for batch in test:
                right += (model(batch["ids"], batch["keep"]).argmax(-1) == batch["queue"]).sum().item()
        print(f"epoch {epoch} loss {total / len(train):.4f} accuracy {right / len(test.dataset):.3f}")


if __name__ == "__main__":
    main()
