"""Leaf disease patches on two processes: each process has its own seed, DDP hands out one start, the plateau is shared."""
import contextlib

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

SEED, ACCUMULATE = 12, 2


def leaves(n, seed, size=12):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    images = 0.6 * rng.standard_normal((n, 3, size, size))
    for i, label in enumerate(labels):
        for _ in range(4):
            y, x = rng.integers(0, size - 3, 2)
            images[i, label, y : y + 3, x : x + 3] += 1.5
    images = (images - images.mean()) / images.std()
    return TensorDataset(torch.from_numpy(images.astype(np.float32)), torch.from_numpy(labels))


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 24, 3, padding=1), nn.GroupNorm(4, 24), nn.ReLU(),
        )
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(24, 3))

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


@torch.no_grad()
def validate(net, loader):
    net.eval()
    sums = torch.zeros(3)
    for x, y in loader:
        logits = net(x)
        sums += torch.tensor([nn.functional.cross_entropy(logits, y, reduction="sum"), (logits.argmax(1) == y).sum(), len(y)])
    dist.all_reduce(sums)
    return (sums[0] / sums[2]).item(), (sums[1] / sums[2]).item()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(SEED + rank)
    np.random.seed(SEED + rank)
    train, val = leaves(960, 1), leaves(202, 2)
    sampler = DistributedSampler(train, seed=SEED)
    loader = DataLoader(train, batch_size=24, sampler=sampler)
    val_loader = DataLoader(Subset(val, range(rank, len(val), world)), batch_size=64)
    ddp = DDP(Patches())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        ddp.train()
        optimizer.zero_grad()
        for step, (x, y) in enumerate(loader, 1):
            flip = torch.rand(len(x)) < 0.5
            x = torch.where(flip[:, None, None, None], x.flip(-1), x)
            closing = step % ACCUMULATE == 0 or step == len(loader)
            with contextlib.nullcontext() if closing else ddp.no_sync():
                loss = nn.functional.cross_entropy(ddp(x), y)
                (loss / ACCUMULATE).backward()
            if closing:
                optimizer.step()
                optimizer.zero_grad()
        val_loss, accuracy = validate(ddp.module, val_loader)
        plateau.step(val_loss)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} val {val_loss:.4f} accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
