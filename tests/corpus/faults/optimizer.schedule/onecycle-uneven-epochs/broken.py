"""Wine-like quality scores from chemistry, one-cycle schedule planned before the run."""
import random

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

random.seed(8), np.random.seed(8), torch.manual_seed(8)
chemistry = torch.randn(1000, 11)
quality = (chemistry[:, :3].sum(1) - chemistry[:, 4] * chemistry[:, 5]).unsqueeze(1) / 2
loader = DataLoader(TensorDataset(chemistry, quality), batch_size=48, shuffle=True)
EPOCHS = 4

net = nn.Sequential(nn.Linear(11, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.0)
sched = OneCycleLR(opt, max_lr=8e-3, total_steps=EPOCHS * (1000 // 48))

for epoch in range(EPOCHS):
    seen = 0.0
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.huber_loss(net(x), y)
        loss.backward()
        opt.step()
        sched.step()
        seen += loss.item() * len(x)
    print(f"epoch {epoch} {seen / 1000:.4f} lr {sched.get_last_lr()[0]:.5f}")
