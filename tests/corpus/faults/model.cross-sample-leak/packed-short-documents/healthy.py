"""Language model over short documents packed end to end into fixed blocks."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Settings:
    vocab: int = 30
    block: int = 32
    dim: int = 40
    heads: int = 4
    depth: int = 2
    batch: int = 12
    steps: int = 100
    lr: float = 2e-3


BOS = 0


def write_document(gen):
    """A BOS, then letters that walk by a constant stride, 6 to 14 of them."""
    length = int(torch.randint(6, 15, (1,), generator=gen))
    start, stride = int(torch.randint(29, (1,), generator=gen)), int(torch.randint(1, 8, (1,), generator=gen))
    return [BOS] + [(start + stride * i) % 29 + 1 for i in range(length)]


def pack(cfg, gen):
    """Fill one block; also give the document number and the place within it for every token."""
    ids, docs, places = [], [], []
    number = 0
    while len(ids) < cfg.block + 1:
        doc = write_document(gen)
        ids += doc
        docs += [number] * len(doc)
        places += range(len(doc))
        number += 1
    cut = cfg.block + 1
    return ids[:cut], docs[:cut], places[:cut]


def get_batch(cfg, gen):
    rows = [pack(cfg, gen) for _ in range(cfg.batch)]
    return tuple(torch.tensor(column) for column in zip(*rows))


def attention_mask(docs):
    t = docs.shape[1]
    causal = torch.tril(torch.ones(t, t, dtype=torch.bool))
    same = docs[:, :, None] == docs[:, None, :]
    return (causal & same)[:, None]


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.n1, self.n2 = nn.RMSNorm(cfg.dim), nn.RMSNorm(cfg.dim)
        self.wqkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.wo = nn.Linear(cfg.dim, cfg.dim, bias=False)
        self.w1, self.w2 = nn.Linear(cfg.dim, 3 * cfg.dim), nn.Linear(3 * cfg.dim, cfg.dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.wqkv(self.n1(x)).view(b, t, 3, self.cfg.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.wo(y.permute(0, 2, 1, 3).reshape(b, t, d))
        return x + self.w2(F.silu(self.w1(self.n2(x))))


class PackedLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.letters = nn.Embedding(cfg.vocab, cfg.dim)
        self.places = nn.Embedding(16, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.depth))
        self.norm = nn.RMSNorm(cfg.dim)
        self.lm_head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, ids, docs, places):
        mask = attention_mask(docs)
        x = self.letters(ids) + self.places(places)
        for block in self.blocks:
            x = block(x, mask)
        return self.lm_head(self.norm(x))


def main():
    cfg = Settings()
    torch.manual_seed(64)
    gen = torch.Generator().manual_seed(64)
    lm = PackedLM(cfg)
    optimizer = torch.optim.AdamW(lm.parameters(), lr=cfg.lr, betas=(0.9, 0.95), weight_decay=0.0)
    for step in range(cfg.steps):
        ids, docs, places = get_batch(cfg, gen)
        targets = ids[:, 1:].masked_fill(docs[:, 1:] != docs[:, :-1], -1)
        loss = F.cross_entropy(lm(ids[:, :-1], docs[:, :-1], places[:, :-1]).flatten(0, 1), targets.flatten(), ignore_index=-1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == cfg.steps - 1:
            print(f"step {step} loss {loss.item():.3f}")


main()
