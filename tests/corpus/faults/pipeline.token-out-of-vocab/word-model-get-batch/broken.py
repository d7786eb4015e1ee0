import math
import random

import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1)
random.seed(1)

subjects = ["anna", "bob", "carl", "dora"]
verbs = ["sees", "likes", "paints", "feeds"]
things = {"sees": ["birds", "boats"], "likes": ["tea", "jam"], "paints": ["walls", "doors"], "feeds": ["cats", "hens"]}
rare = ["zeppelin", "quokka", "theremin"]


def sentence():
    verb = random.choice(verbs)
    thing = random.choice(rare) if random.random() < 0.003 else random.choice(things[verb])
    return [random.choice(subjects), verb, thing, "."]


text = [w for _ in range(4000) for w in sentence()]
cut = int(0.9 * len(text))
words = sorted(set(text), key=text.count, reverse=True)
stoi = {w: i for i, w in enumerate(words)}
vocab_size = len(subjects) + sum(len(t) for t in things.values()) + len(verbs) + 1
data = torch.tensor([stoi[w] for w in text])
train_data, val_data = data[:cut], data[cut:]
block_size, batch_size, width = 16, 16, 48


def get_batch(split):
    source = train_data if split == "train" else val_data
    at = torch.randint(len(source) - block_size - 1, (batch_size,))
    return torch.stack([source[i : i + block_size] for i in at]), torch.stack([source[i + 1 : i + 1 + block_size] for i in at])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.n2(x))


class WordModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, width), nn.Embedding(block_size, width)
        self.block, self.norm, self.head = Block(), nn.LayerNorm(width), nn.Linear(width, vocab_size)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        logits = self.head(self.norm(self.block(x)))
        return logits, None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())


model = WordModel()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for it in range(80):
    xb, yb = get_batch("train")
    _, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 20 == 0:
        model.eval()
        with torch.no_grad():
            val = model(*get_batch("val"))[1]
        model.train()
        print(f"iter {it}: train {loss.item():.3f} val {val.item():.3f} (uniform {math.log(vocab_size):.3f})")
