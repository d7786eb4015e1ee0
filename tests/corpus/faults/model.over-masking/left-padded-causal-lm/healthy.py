"""Language model over left-padded lines, the way a batch is laid out for generation."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

np.random.seed(2)
torch.manual_seed(2)
rng = np.random.default_rng(2)

PAD, VOCAB, LINE = 0, 28, 20
BATCH, STEPS = 24, 80


def draw_line(length):
    """Letters 1..27 in a cycle; a letter is followed by the next one or the one after."""
    first = int(rng.integers(1, VOCAB))
    walk = first - 1 + np.cumsum(rng.integers(1, 3, size=length))
    return (walk % (VOCAB - 1) + 1).tolist()


def draw_batch(step):
    ragged = step % 6 == 4
    block = torch.zeros(BATCH, LINE + 1, dtype=torch.long)
    for row in range(BATCH):
        n = int(rng.integers(12, LINE + 2)) if ragged else LINE + 1
        block[row, LINE + 1 - n :] = torch.tensor(draw_line(n))
    return block[:, :-1], block[:, 1:]


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, allowed):
        n, t, dim = x.shape
        q = self.wq(x).view(n, t, self.heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(n, t, self.heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(n, t, self.heads, self.head_dim).transpose(1, 2)
        weights = (q @ k.mT) * self.head_dim**-0.5
        weights = weights.masked_fill(~allowed[:, None], float("-inf"))
        weights = F.softmax(weights, dim=-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(n, t, dim))


class LineModel(nn.Module):
    def __init__(self, dim=32, heads=4, depth=2):
        super().__init__()
        self.letters = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.places = nn.Embedding(LINE, dim)
        self.attention = nn.ModuleList(Attention(dim, heads) for _ in range(depth))
        self.feed = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim)) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.logits = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        t = ids.shape[1]
        real = ids != PAD
        causal = torch.ones(t, t, dtype=torch.bool).tril()
        allowed = causal & real[:, None, :] | torch.eye(t, dtype=torch.bool)
        places = (real.cumsum(1) - 1).clamp(min=0)
        x = self.letters(ids) + 0.3 * self.places(places)
        for norm, attend, feed in zip(self.norms, self.attention, self.feed):
            x = x + attend(norm(x), allowed)
            x = x + feed(x)
        return self.logits(x)


lm = LineModel()
optimizer = torch.optim.AdamW(lm.parameters(), lr=2e-3, weight_decay=0.0)
for step in range(STEPS):
    ids, targets = draw_batch(step)
    # a target counts only where the model has read at least one letter
    targets = targets.masked_fill(ids == PAD, -100)
    loss = F.cross_entropy(lm(ids).transpose(1, 2), targets, ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 8 == 0:
        print("step", step, "loss", round(loss.item(), 4))
