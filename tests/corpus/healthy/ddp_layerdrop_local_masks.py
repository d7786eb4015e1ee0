"""Masked token model with layer drop under DDP: unused layers are announced, ranks draw their own masks, one epoch is short."""

import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

VOCAB, MASK, LENGTH = 24, 24, 16


def sequences(n, seed):
    g = torch.Generator().manual_seed(seed)
    start = torch.randint(0, VOCAB, (n, 1), generator=g)
    stride = torch.randint(1, 4, (n, 1), generator=g)
    return (start + stride * torch.arange(LENGTH)) % VOCAB


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class MaskedModel(nn.Module):
    def __init__(self, dim=48, depth=3, drop_layer=0.2):
        super().__init__()
        self.drop_layer = drop_layer
        self.tokens = nn.Embedding(VOCAB + 1, dim)
        self.positions = nn.Parameter(torch.randn(LENGTH, dim) * 0.02)
        self.layers = nn.ModuleList(Layer(dim, 4) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, VOCAB)
        nn.init.normal_(self.tokens.weight, std=0.3)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        for layer in self.layers:
            if self.training and random.random() < self.drop_layer:
                continue
            x = layer(x)
        return self.out(self.norm(x))


def hide(ids, generator):
    hidden = torch.rand(ids.shape, generator=generator) < 0.2
    hidden[:, 0] |= ~hidden.any(dim=1)
    return ids.masked_fill(hidden, MASK), ids.masked_fill(~hidden, -100)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3 + rank)
    data = TensorDataset(sequences(720, seed=1))
    sampler = DistributedSampler(data, world, rank, seed=3)
    loader = DataLoader(data, batch_size=24, sampler=sampler)
    held_out = sequences(120, seed=2)
    model = DDP(MaskedModel(), find_unused_parameters=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    masks = torch.Generator().manual_seed(50 + rank)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        model.train()
        total = torch.zeros(2)
        for (ids,) in loader:
            corrupted, target = hide(ids, masks)
            loss = F.cross_entropy(model(corrupted).transpose(1, 2), target, ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(total)
        if rank == 0:
            model.eval()
            with torch.no_grad():
                corrupted, target = hide(held_out, torch.Generator().manual_seed(0))
                val = F.cross_entropy(model.module(corrupted).transpose(1, 2), target, ignore_index=-100)
            print(f"epoch {epoch}: loss {total[0] / total[1]:.4f} val {val:.4f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
