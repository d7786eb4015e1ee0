import random

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

# hyperparameters
batch_size = 32
image_size = 16
patch = 4
n_embd = 48
n_head = 4
n_layer = 2
learning_rate = 2e-3
max_iters = 180
eval_interval = 60
num_classes = 6

random.seed(1337)
np.random.seed(1337)
torch.manual_seed(1337)


def draw(n):
    """Blobs in one of six layouts on a noisy background."""
    layouts = [[(4, 4)], [(12, 12)], [(4, 4), (12, 12)], [(4, 12), (12, 4)], [(4, 12)], [(8, 8)]]
    yy, xx = torch.meshgrid(torch.arange(image_size), torch.arange(image_size), indexing="ij")
    labels = torch.randint(num_classes, (n,))
    images = torch.randn(n, image_size, image_size) * 0.3
    for i, label in enumerate(labels.tolist()):
        for cy, cx in layouts[label]:
            dy, dx = torch.randn(2)
            images[i] += 2 * torch.exp(-((yy - cy - dy) ** 2 + (xx - cx - dx) ** 2) / 6)
    return images, labels


images, labels = draw(1400)
mean, std = images[:1200].mean(), images[:1200].std()
images = (images - mean) / std
data = {"train": (images[:1200], labels[:1200]), "val": (images[1200:], labels[1200:])}


def get_batch(split):
    xs, ys = data[split]
    ix = torch.randint(len(xs), (batch_size,))
    return xs[ix], ys[ix]


@torch.no_grad()
def estimate(model):
    model.eval()
    out = {}
    for split in ("train", "val"):
        xs, ys = data[split]
        logits, loss = model(xs[:200], ys[:200])
        out[split] = (loss.item(), (logits.argmax(-1) == ys[:200]).float().mean().item())
    model.train()
    return out


class Head(nn.Module):
    """one head of self-attention"""

    def __init__(self, head_size):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        return F.softmax(wei, dim=-1) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, num_heads, head_size):
        super().__init__()
        self.heads = [Head(head_size) for _ in range(num_heads)]
        self.proj = nn.Linear(num_heads * head_size, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.sa = MultiHeadAttention(n_head, n_embd // n_head)
        self.ffwd = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))
        self.ln1 = nn.LayerNorm(n_embd)
        self.ln2 = nn.LayerNorm(n_embd)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch_embed = nn.Linear(patch * patch, n_embd)
        self.pos_embed = nn.Parameter(torch.randn(1, (image_size // patch) ** 2, n_embd) * 0.5)
        self.blocks = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, num_classes)

    def forward(self, x, targets=None):
        x = x.unfold(1, patch, patch).unfold(2, patch, patch).reshape(x.size(0), -1, patch * patch)
        x = self.patch_embed(x) + self.pos_embed
        logits = self.head(self.ln_f(self.blocks(x)).mean(1))
        loss = None if targets is None else F.cross_entropy(logits, targets)
        return logits, loss


model = ViT()
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.0)

for it in range(max_iters):
    xb, yb = get_batch("train")
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if (it + 1) % eval_interval == 0:
        for split, (split_loss, acc) in estimate(model).items():
            print(f"step {it + 1} {split}: loss {split_loss:.4f} acc {acc:.3f}")
