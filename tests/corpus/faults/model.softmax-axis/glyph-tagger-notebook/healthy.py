# %% [markdown]
# # Tagging glyph streams
# Each glyph's tag depends on its own class and on the key glyph announced somewhere in the stream.

# %%
import math
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

seed = 1234
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)

V, T, TAGS = 36, 20, 6


# %%
def sample_streams(n):
    x = torch.randint(TAGS, V, (n, T))
    key = torch.randint(0, TAGS, (n,))
    x[torch.arange(n), torch.randint(0, T, (n,))] = key
    y = (x + key[:, None]) % TAGS
    return x, y


train_x, train_y = sample_streams(2400)
test_x, test_y = sample_streams(300)


# %%
class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, t):
        b, n, w = t.shape
        return t.view(b, n, self.heads, w // self.heads).transpose(1, 2)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(w // self.heads)
        weights = F.softmax(scores, dim=-1)
        mixed = torch.matmul(weights, v).transpose(1, 2).reshape(b, n, w)
        return self.out(mixed)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm_a = nn.LayerNorm(width)
        self.attn = SelfAttention(width, heads)
        self.norm_b = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 3 * width), nn.SiLU(), nn.Linear(3 * width, width))

    def forward(self, x):
        x = x + self.attn(self.norm_a(x))
        return x + self.mlp(self.norm_b(x))


class Tagger(nn.Module):
    def __init__(self, width=64, heads=4, depth=2):
        super().__init__()
        self.glyph = nn.Embedding(V, width)
        self.place = nn.Embedding(T, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.tag = nn.Linear(width, TAGS)
        nn.init.normal_(self.glyph.weight, std=0.5)
        nn.init.normal_(self.place.weight, std=0.1)

    def forward(self, x):
        h = self.glyph(x) + self.place.weight[None, : x.size(1)]
        return self.tag(self.norm(self.blocks(h)))


# %%
net = Tagger()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
batch = 48
history = []
for epoch in range(4):
    net.train()
    perm = torch.randperm(len(train_x))
    for i in range(0, len(perm), batch):
        idx = perm[i : i + batch]
        logits = net(train_x[idx])
        loss = F.cross_entropy(logits.reshape(-1, TAGS), train_y[idx].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.append(loss.item())
    net.eval()
    with torch.no_grad():
        acc = (net(test_x).argmax(-1) == test_y).float().mean().item()
    print(f"epoch {epoch}: loss {np.mean(history[-20:]):.3f}, test accuracy {acc:.3f}")
