import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

# Species classification from short audio embeddings, long-tailed labels. Started with torchrun.

NUM_SPECIES = 6
FRAMES, DIM = 12, 20
SHARE = np.array([0.4, 0.22, 0.16, 0.1, 0.07, 0.05])


def synthesize(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(NUM_SPECIES, size=n, p=SHARE)
    songs = np.random.default_rng(0).normal(size=(NUM_SPECIES, DIM))
    x = rng.normal(size=(n, FRAMES, DIM))
    start = rng.integers(0, FRAMES - 4, size=n)
    for i in range(n):
        x[i, start[i] : start[i] + 4] += songs[y[i]]
    x = (x - x.mean()) / x.std()
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class SongNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.conv1 = nn.Conv1d(DIM, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, padding=1)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, NUM_SPECIES)

    def forward(self, x):
        h = F.relu(self.conv1(x.transpose(1, 2)))
        h = F.relu(self.conv2(h)).mean(-1)
        return self.head(self.norm(h))


def prior_logits(labels):
    counts = torch.bincount(labels, minlength=NUM_SPECIES).float() + 1
    return (counts / counts.sum()).log()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234)
    np.random.seed(1234)
    random.seed(1234)

    features, labels = synthesize(960, seed=8)
    val_x, val_y = synthesize(200, seed=9)
    local_x, local_y = features[rank::world], labels[rank::world]

    model = DDP(SongNet())
    with torch.no_grad():
        model.module.head.bias.copy_(prior_logits(labels))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    order = torch.Generator().manual_seed(100 + rank)
    batch = 24
    for epoch in range(5):
        model.train()
        perm = torch.randperm(len(local_x), generator=order)
        epoch_loss, num = 0.0, 0
        for i in range(0, len(perm), batch):
            idx = perm[i : i + batch]
            loss = F.cross_entropy(model(local_x[idx]), local_y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
            num += 1
        model.eval()
        with torch.no_grad():
            accuracy = (model.module(val_x).argmax(-1) == val_y).float().mean().item()
        if rank == 0:
            print(f"[{epoch}] loss={epoch_loss / num:.4f} val_acc={accuracy:.3f}", flush=True)
    dist.destroy_process_group()


main()
