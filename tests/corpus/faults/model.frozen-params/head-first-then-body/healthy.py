"""Classify symbol strings: only the head trains at first, then the whole network."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

opts = SimpleNamespace(vocab=30, length=16, width=32, epochs=4, lr=3e-3, batch=32, seed=13)
torch.manual_seed(opts.seed)


def strings(n):
    x = torch.randint(1, opts.vocab, (n, opts.length))
    marks = (x % 7 < 2).sum(1) - (x % 5 == 0).sum(1)
    return x, (marks > marks.float().median()).long()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(opts.vocab, opts.width)
        self.pos = nn.Parameter(torch.randn(opts.length, opts.width) * 0.02)
        block = nn.TransformerEncoderLayer(opts.width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(opts.width)

    def forward(self, x):
        return self.norm(self.body(self.tok(x) + self.pos)).mean(1)


encoder, head = Encoder(), nn.Linear(opts.width, 2)
model = nn.Sequential(encoder, head)
optimizer = torch.optim.Adam(model.parameters(), lr=opts.lr)
x, y = strings(1000)

for epoch in range(opts.epochs):
    for p in encoder.parameters():
        p.requires_grad = epoch > 0
    model.train()
    total, parts = 0.0, torch.randperm(800).split(opts.batch)
    for idx in parts:
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[800:]).argmax(1) == y[800:]).float().mean().item()
    print(f"epoch {epoch} loss {total / len(parts):.3f} accuracy {accuracy:.3f}")
