"""Decoder-only character model that spells plural forms: "bad|bads." style pairs, one pair per row."""

import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(64)
torch.manual_seed(64)

PAD = 0
SYLLABLES = ["ba", "da", "ke", "lo", "mi", "nu", "ra", "sa", "ta", "va"]


def noun():
    return "".join(random.choice(SYLLABLES) for _ in range(random.randint(2, 3)))


def make_pair():
    word = noun()
    if word.endswith("a"):
        return word + "|" + word[:-1] + "en."
    return word + "|" + word + "s."


corpus = [make_pair() for _ in range(1300)]
alphabet = sorted(set("".join(corpus)) - {"|", "."})
stoi = {ch: i for i, ch in enumerate(alphabet)}
stoi["|"] = max(stoi.values()) + 1
stoi["."] = max(stoi.values()) + 1
itos = {i: ch for ch, i in stoi.items()}
vocab_size = max(stoi.values()) + 1

block_size = max(len(row) for row in corpus) - 1


def to_batch(rows):
    x = torch.full((len(rows), block_size), PAD)
    y = torch.full((len(rows), block_size), PAD)
    for r, row in enumerate(rows):
        ids = torch.tensor([stoi[c] for c in row])
        x[r, : len(ids) - 1] = ids[:-1]
        y[r, : len(ids) - 1] = ids[1:]
    return x, y


def get_batch(split, size=32):
    pool = corpus[:1100] if split == "train" else corpus[1100:]
    return to_batch(random.sample(pool, size))


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        future = torch.ones(t, t, dtype=torch.bool).triu(1)
        weights = F.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Speller(nn.Module):
    def __init__(self, dim=48, heads=4, depth=2):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        self.pos = nn.Embedding(block_size, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab_size)

    def forward(self, idx, targets=None):
        h = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        logits = self.lm_head(self.norm(self.blocks(h)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD)


model = Speller()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


@torch.no_grad()
def estimate(batches=3):
    model.eval()
    value = sum(model(*get_batch("val"))[1].item() for _ in range(batches)) / batches
    model.train()
    return value


@torch.no_grad()
def complete(prompt):
    model.eval()
    text = prompt
    while len(text) < block_size and not text.endswith("."):
        logits, _ = model(torch.tensor([[stoi[c] for c in text]]))
        logits[0, -1, PAD] = float("-inf")
        text += itos[int(logits[0, -1].argmax())]
    model.train()
    return text


for step in range(150):
    xb, yb = get_batch("train")
    _, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 30 == 0:
        print(f"step {step:4d} train {loss.item():.3f} val {estimate():.3f}")
print(complete("kelo|"), complete("bata|"))
