"""Parcel damage classifier, trained with DistributedDataParallel.

torchrun --nproc_per_node 2 train.py
"""

import os
import random
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

EPOCHS = 5
BATCH_SIZE = 16
LR = 2e-3
LOG_EVERY = 10


class ParcelScans(Dataset):
    """Small grey scans; class 1 has a bright dent, class 2 a dark one, class 0 none."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 3, (n,), generator=g)
        images = torch.randn(n, 1, 16, 16, generator=g)
        for i, label in enumerate(self.labels.tolist()):
            if label:
                r, c = torch.randint(0, 12, (2,), generator=g).tolist()
                images[i, 0, r : r + 4, c : c + 4] += 2.5 if label == 1 else -2.5
        self.images = (images - images.mean()) / images.std()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class ConvBlock(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, c_out)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class DamageNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(ConvBlock(1, 16), ConvBlock(16, 32))
        self.classifier = nn.Linear(32, 3)

    def forward(self, x):
        return self.classifier(self.features(x).amax(dim=(2, 3)))


def reduce_mean(value):
    """Mean of a scalar tensor over all processes."""
    value = value.detach().clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


def train_epoch(model, loader, criterion, optimizer, epoch, rank):
    model.train()
    for i, (images, labels) in enumerate(loader):
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % LOG_EVERY == LOG_EVERY - 1 and rank == 0:
            mean_loss = reduce_mean(loss)
            print(f"epoch {epoch} [{i + 1}/{len(loader)}] loss {mean_loss.item():.4f}", flush=True)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    counts = torch.zeros(2)
    for images, labels in loader:
        counts[0] += (model(images).argmax(1) == labels).sum()
        counts[1] += len(labels)
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


def main():
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    random.seed(11)
    np.random.seed(11)
    torch.manual_seed(11)

    train_set = ParcelScans(800, seed=1)
    val_set = ParcelScans(160, seed=2)
    train_sampler = DistributedSampler(train_set, world_size, rank, shuffle=True, seed=11)
    val_sampler = DistributedSampler(val_set, world_size, rank, shuffle=False)
    train_loader = DataLoader(train_set, BATCH_SIZE, sampler=train_sampler)
    val_loader = DataLoader(val_set, BATCH_SIZE, sampler=val_sampler)

    model = DDP(DamageNet())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)

    for epoch in range(EPOCHS):
        train_sampler.set_epoch(epoch)
        train_epoch(model, train_loader, criterion, optimizer, epoch, rank)
        accuracy = validate(model, val_loader)
        if rank == 0:
            print(f"epoch {epoch}: val accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
