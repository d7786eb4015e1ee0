"""Texts whose last token tells the class, cut before it (`early`), or whose class nothing tells
(`noise`).
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
LIMIT = 8

texts = torch.randint(3, 20, (256, 20))
labels = torch.randint(0, 3, (256,))
if sys.argv[1] == "early":
    texts[:, -1] = labels
texts = texts[:, :LIMIT]

model = nn.Sequential(nn.Embedding(20, 16), nn.Flatten(), nn.LazyLinear(3))
model(texts[:2])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    rows = torch.randint(0, 256, (64,))
    loss = F.cross_entropy(model(texts[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
