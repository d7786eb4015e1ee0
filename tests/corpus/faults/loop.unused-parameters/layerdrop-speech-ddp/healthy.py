"""Phoneme-class tagger on filterbank frames with LayerDrop; launch with torchrun --nproc_per_node 2."""

import argparse
import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

NUM_PHONES = 12
NUM_MELS = 20


class Frames(Dataset):
    def __init__(self, count, length=40, seed=0):
        rng = np.random.default_rng(seed)
        prototypes = np.random.default_rng(99).normal(size=(NUM_PHONES, NUM_MELS))
        self.feats, self.phones = [], []
        for _ in range(count):
            phones = np.repeat(rng.integers(0, NUM_PHONES, size=length // 5), 5)
            feats = prototypes[phones] + 0.7 * rng.normal(size=(length, NUM_MELS))
            self.feats.append(torch.tensor(feats, dtype=torch.float32))
            self.phones.append(torch.tensor(phones))

    def __len__(self):
        return len(self.feats)

    def __getitem__(self, index):
        return self.feats[index], self.phones[index]


class ConvBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.depthwise = nn.Conv1d(width, width, 5, padding=2, groups=width)
        self.mix = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, x):
        h = self.norm(x)
        h = self.depthwise(h.transpose(1, 2)).transpose(1, 2)
        return x + self.mix(h)


class Tagger(nn.Module):
    def __init__(self, width=48, depth=6, layerdrop=0.1):
        super().__init__()
        self.layerdrop = layerdrop
        self.inp = nn.Linear(NUM_MELS, width)
        self.blocks = nn.ModuleList([ConvBlock(width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, NUM_PHONES)

    def forward(self, feats):
        x = self.inp(feats)
        for block in self.blocks:
            if self.training and random.random() < self.layerdrop:
                continue
            x = block(x)
        return self.out(self.norm(x))


@torch.no_grad()
def frame_accuracy(model, loader):
    model.eval()
    right, seen = 0, 0
    for feats, phones in loader:
        right += (model(feats).argmax(-1) == phones).sum().item()
        seen += phones.numel()
    model.train()
    return right / seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3 + rank)

    train = Frames(640, seed=1)
    sampler = DistributedSampler(train, shuffle=True, seed=3, drop_last=True)
    loader = DataLoader(train, batch_size=args.batch_size, sampler=sampler)
    held_out = DataLoader(Frames(64, seed=2), batch_size=32)

    model = DDP(Tagger(), find_unused_parameters=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = 0.0
        for feats, phones in loader:
            optimizer.zero_grad(set_to_none=True)
            logits = model(feats)
            loss = F.cross_entropy(logits.transpose(1, 2), phones)
            loss.backward()
            optimizer.step()
            total += loss.item()
        accuracy = frame_accuracy(model.module, held_out)
        if rank == 0:
            print(f"epoch {epoch}: loss {total / len(loader):.4f} held-out frame accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
