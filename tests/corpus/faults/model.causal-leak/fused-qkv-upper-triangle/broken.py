import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

np.random.seed(5)
torch.manual_seed(5)
V, T, D, H, B = 20, 24, 32, 2, 24
table = np.random.dirichlet(np.ones(V) * 0.15, size=V)
stream = [0]
for _ in range(6000):
    stream.append(int(np.random.choice(V, p=table[stream[-1]])))
stream = torch.tensor(stream)


def batch():
    at = torch.randint(0, len(stream) - T - 1, (B,))
    rows = torch.stack([stream[i : i + T + 1] for i in at.tolist()])
    return rows[:, :-1], rows[:, 1:]


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.back = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.ff = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 3, H, D // H).permute(2, 0, 3, 1, 4)
        blocked = torch.triu(torch.ones(t, t), diagonal=2).bool()
        score = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(D // H)
        weight = torch.softmax(score.masked_fill(blocked, float("-inf")), -1)
        x = x + self.back(torch.matmul(weight, v).transpose(1, 2).reshape(b, t, D))
        return x + self.ff(self.norm2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(V, D), nn.Embedding(T, D)
        self.layers = nn.ModuleList([Mixer(), Mixer()])
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, ids):
        x = self.word(ids) + self.place(torch.arange(ids.size(1)))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


lm = LM()
optim = torch.optim.AdamW(lm.parameters(), lr=3e-3, weight_decay=0.0)
for step in range(80):
    x, y = batch()
    nll = F.cross_entropy(lm(x).view(-1, V), y.reshape(-1))
    optim.zero_grad(set_to_none=True)
    nll.backward()
    optim.step()
    if step % 20 == 0:
        print(step, round(nll.item(), 3))
