import contextlib
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset

cfg = {
    "device": "cpu",
    "amp": True,
    "lr": 2e-3,
    "epochs": 3,
    "batch": 32,
    "clip": 1.0,
    "mels": 20,
    "frames": 32,
    "words": 6,
    "seed": 40,
}


def set_seed(s):
    random.seed(s)
    np.random.seed(s)
    torch.manual_seed(s)


def spectrograms(n, seed):
    g = torch.Generator().manual_seed(seed)
    bank = torch.randn(cfg["words"], cfg["mels"], 8, generator=torch.Generator().manual_seed(7))
    y = torch.randint(cfg["words"], (n,), generator=g)
    x = 1.2 * torch.randn(n, cfg["mels"], cfg["frames"], generator=g)
    at = torch.randint(0, cfg["frames"] - 8, (n,), generator=g)
    for i in range(n):
        x[i, :, at[i] : at[i] + 8] += bank[y[i]]
    return TensorDataset((x - x.mean()) / x.std(), y)


class AttentionPooling(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, h):
        return (self.score(h).softmax(dim=1) * h).sum(dim=1)


class KeywordNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(cfg["mels"], 48, 5, padding=2)
        self.norm = nn.LayerNorm(48)
        self.ff = nn.Linear(48, 48)
        self.pool = AttentionPooling(48)
        self.out = nn.Linear(48, cfg["words"])

    def forward(self, x):
        h = F.gelu(self.conv(x)).transpose(1, 2)
        h = h + F.gelu(self.ff(self.norm(h)))
        return self.out(self.pool(h))


set_seed(cfg["seed"])
train_dl = DataLoader(spectrograms(960, 1), cfg["batch"], shuffle=True)
val_dl = DataLoader(spectrograms(192, 2), cfg["batch"])
model = KeywordNet().to(cfg["device"])
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = GradScaler(cfg["device"], enabled=cfg["amp"])


def cast():
    return autocast(cfg["device"], dtype=torch.float16) if cfg["amp"] else contextlib.nullcontext()


for epoch in range(cfg["epochs"]):
    model.train()
    seen = 0.0
    for x, y in train_dl:
        x, y = x.to(cfg["device"]), y.to(cfg["device"])
        opt.zero_grad(set_to_none=True)
        with cast():
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), cfg["clip"])
        scaler.step(opt)
        scaler.update()
        seen += loss.item()
    model.eval()
    with torch.no_grad(), cast():
        acc = torch.cat([model(x).argmax(1) == y for x, y in val_dl]).float().mean()
    print(f"epoch {epoch} | loss {seen / len(train_dl):.4f} | val acc {acc:.3f}")
