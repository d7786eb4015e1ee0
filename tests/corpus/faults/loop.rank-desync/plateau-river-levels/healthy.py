"""River level forecasting on several processes. Launch with: torchrun --nproc_per_node=2 train.py"""
import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class Config:
    window: int = 24
    hidden: int = 32
    batch_size: int = 32
    epochs: int = 9
    lr: float = 1e-2
    seed: int = 7


def river(n, window, seed):
    """Levels driven by seasonal flow and rain; predict the level three steps ahead."""
    rng = np.random.default_rng(seed)
    xs, ys = [], []
    for _ in range(n):
        t = np.arange(window + 3)
        phase, freq = rng.uniform(0, 2 * np.pi), rng.uniform(0.15, 0.45)
        level = np.sin(freq * t + phase) * rng.uniform(0.7, 1.3) + 0.15 * rng.standard_normal(window + 3)
        xs.append(level[:window])
        ys.append(level[-1])
    x = torch.tensor(np.stack(xs), dtype=torch.float32).unsqueeze(-1)
    return TensorDataset(x, torch.tensor(ys, dtype=torch.float32))


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        states, _ = self.gru(x)
        return self.out(states[:, -1]).squeeze(-1)


def validate(model, loader):
    model.eval()
    total = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            total[0] += nn.functional.mse_loss(model(x), y, reduction="sum")
            total[1] += len(y)
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(cfg.seed)
    np.random.seed(cfg.seed)

    train, val = river(1200, cfg.window, 1), river(240, cfg.window, 2)
    sampler = DistributedSampler(train, num_replicas=world, rank=rank, shuffle=True, seed=cfg.seed)
    loader = DataLoader(train, batch_size=cfg.batch_size, sampler=sampler, drop_last=True)
    val_shard = torch.utils.data.Subset(val, range(rank, len(val), world))
    val_loader = DataLoader(val_shard, batch_size=60)

    model = DDP(Forecaster(cfg.hidden))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.03)

    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        model.train()
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            running += loss.item()
        val_loss = validate(model.module, val_loader)
        scheduler.step(val_loss)
        if rank == 0:
            lr = optimizer.param_groups[0]["lr"]
            print(f"epoch {epoch}: train {running / len(loader):.4f} val {val_loss:.4f} lr {lr:.2e}", flush=True)

    if rank == 0 and os.environ.get("SAVE_TO"):
        torch.save(model.module.state_dict(), os.environ["SAVE_TO"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
