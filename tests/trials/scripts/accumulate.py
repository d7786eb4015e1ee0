"""Four micro-batches per step; `unscaled` adds their gradients up, `scaled` divides each loss,
`divided` the gradients.
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 12)
y = x[:, :3].argmax(1)
model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (inputs, targets) in enumerate(DataLoader(TensorDataset(x, y), batch_size=8)):
    loss = F.cross_entropy(model(inputs), targets)
    (loss / 4 if sys.argv[1] == "scaled" else loss).backward()
    if i % 4 == 3:
        if sys.argv[1].startswith("divided"):
            for p in model.parameters():
                p.grad /= 4
        if not sys.argv[1].endswith("unclipped"):
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        optimizer.zero_grad()
