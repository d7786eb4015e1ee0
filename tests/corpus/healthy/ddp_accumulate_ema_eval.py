"""Two ranks, accumulation under no_sync, heavy-tailed targets under a Huber loss, an averaged copy that rank 0 alone evaluates."""
import copy
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

MICRO = 2


def flows(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=g)
    tail = 0.2 * torch.randn(n, generator=g) / torch.rand(n, generator=g).clamp_min(0.03)
    return x, 1.5 * x[:, 0] - x[:, 1] * x[:, 2].sigmoid() + 0.2 * tail


class Net(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(10, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(0.05), nn.Linear(width, width))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(nn.functional.gelu(self.inner(x))).squeeze(-1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(50)
    x, y = flows(1280, 1)
    valid_x, valid_y = flows(301, 2)
    model = DDP(Net())
    average = copy.deepcopy(model.module).requires_grad_(False) if rank == 0 else None
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    torch.manual_seed(50 + rank)  # dropout differs from rank to rank
    loss_fn = nn.HuberLoss(delta=1.0)
    for epoch in range(5):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(900 + epoch))[rank::world]
        parts = order.split(16)
        model.train()
        for i, rows in enumerate(parts):
            last = (i + 1) % MICRO == 0
            if last:
                loss = loss_fn(model(x[rows]), y[rows]) / MICRO
                loss.backward()
            else:
                with model.no_sync():
                    loss = loss_fn(model(x[rows]), y[rows]) / MICRO
                    loss.backward()
            if not last:
                continue
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if rank == 0:
                with torch.no_grad():
                    for slow, fast in zip(average.parameters(), model.module.parameters()):
                        slow.lerp_(fast, 0.1)
        if rank == 0:
            average.eval()
            with torch.no_grad():
                total = sum(loss_fn(average(a), b).item() * len(b) for a, b in zip(valid_x.split(64), valid_y.split(64)))
            print(f"epoch {epoch} train {MICRO * loss.item():.4f} valid {total / len(valid_y):.4f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
