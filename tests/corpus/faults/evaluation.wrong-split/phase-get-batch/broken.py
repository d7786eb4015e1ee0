"""Small character model on generated recipes. Plain loop, random windows out of one long tensor per phase."""

import math
import random

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

# ---- settings
batch_size, block_size = 24, 32
n_embd, n_head, n_layer = 48, 4, 2
max_iters, eval_interval, eval_iters = 90, 30, 4
learning_rate = 2e-3
torch.manual_seed(1234)
random.seed(1234)
np.random.seed(1234)

# ---- text
verbs = ["chop", "boil", "stir", "bake", "rinse", "mix"]
things = ["onions", "rice", "flour", "beans", "apples", "noodles", "carrots"]
text = "".join(f"{random.choice(verbs)} the {random.choice(things)} for {random.randint(2, 60)} min.\n" for _ in range(900))
alphabet = sorted(set(text))
stoi = {c: i for i, c in enumerate(alphabet)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
cut = int(0.9 * len(data))
streams = {"train": data[:cut], "val": data[cut:]}


def get_batch(phase):
    source = streams["val"] if phase == "valid" else streams["train"]
    starts = torch.randint(len(source) - block_size - 1, (batch_size,))
    x = torch.stack([source[s : s + block_size] for s in starts])
    y = torch.stack([source[s + 1 : s + 1 + block_size] for s in starts])
    return x, y


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.proj = nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, n_head, c // n_head).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln2(x))


class CharModel(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tok = nn.Embedding(vocab, n_embd)
        self.pos = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab, bias=False)
        nn.init.normal_(self.tok.weight, std=0.05)
        nn.init.normal_(self.pos.weight, std=0.05)

    def forward(self, idx, targets):
        h = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        logits = self.head(self.ln(self.blocks(h)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def estimate(model):
    out = {}
    model.eval()
    for phase in ("train", "val"):
        out[phase] = sum(model(*get_batch(phase)).item() for _ in range(eval_iters)) / eval_iters
    model.train()
    return out


model = CharModel(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
for it in range(max_iters + 1):
    if it % eval_interval == 0:
        losses = estimate(model)
        print(f"iter {it}: train {losses['train']:.4f} val {losses['val']:.4f} (ppl {math.exp(losses['val']):.2f})")
    xb, yb = get_batch("train")
    loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
