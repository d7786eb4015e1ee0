"""Fine-tuning in two stages: the head alone first, then the backbone joins at a hundredth of the rate."""

import random

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts
from torch.utils.data import DataLoader, TensorDataset


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def scenes(n, tasks, generator):
    x = torch.randn(n, 24, generator=generator)
    basis = torch.randn(24, 8, generator=torch.Generator().manual_seed(50))
    rotate = torch.randn(8, tasks, generator=torch.Generator().manual_seed(50 + tasks))
    y = (torch.tanh(x @ basis / 3) @ rotate).argmax(1)
    return TensorDataset(x, y)


def backbone():
    return nn.Sequential(nn.Linear(24, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU())


def split_by_decay(module, lr, decay):
    matrices = [p for p in module.parameters() if p.ndim > 1]
    vectors = [p for p in module.parameters() if p.ndim < 2]
    return [{"params": matrices, "lr": lr, "weight_decay": decay}, {"params": vectors, "lr": lr, "weight_decay": 0.0}]


def run_epoch(body, head, loader, optimizer, scheduler=None):
    body.train()
    head.train()
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(head(body(x)), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if scheduler is not None:
            scheduler.step()
        total += loss.item()
    return total / len(loader)


def main():
    seed_all(62)
    g = torch.Generator().manual_seed(62)
    body, first_head = backbone(), nn.Linear(64, 6)
    broad = DataLoader(scenes(1280, 6, g), 64, shuffle=True)
    pretraining = torch.optim.AdamW(split_by_decay(body, 2e-3, 0.01) + split_by_decay(first_head, 2e-3, 0.01))
    for epoch in range(3):
        print(f"pretrain {epoch} {run_epoch(body, first_head, broad, pretraining):.4f}")

    narrow = DataLoader(scenes(640, 3, g), 32, shuffle=True)
    held = scenes(200, 3, g)
    head = nn.Linear(64, 3)
    body.requires_grad_(False)
    optimizer = torch.optim.AdamW(split_by_decay(head, 3e-3, 0.01))
    for epoch in range(2):
        print(f"head only {epoch} {run_epoch(body, head, narrow, optimizer):.4f}")

    body.requires_grad_(True)
    for group in split_by_decay(body, 3e-5, 0.01):
        optimizer.add_param_group(group)
    scheduler = CosineAnnealingWarmRestarts(optimizer, T_0=len(narrow), T_mult=2, eta_min=1e-6)
    for epoch in range(3):
        print(f"all {epoch} {run_epoch(body, head, narrow, optimizer, scheduler):.4f}")

    body.eval()
    head.eval()
    with torch.no_grad():
        x, y = held.tensors
        print(f"held-out accuracy {(head(body(x)).argmax(1) == y).float().mean():.3f}")


if __name__ == "__main__":
    main()
