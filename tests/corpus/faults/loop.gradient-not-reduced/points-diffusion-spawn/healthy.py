#!/usr/bin/env python
"""Tiny noise-prediction model on 2-D spirals, two data parallel workers started from here."""

import argparse
import math
import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

T = 50


def spirals(n):
    g = torch.Generator().manual_seed(3)
    t = torch.rand(n, generator=g) * 3 * math.pi + math.pi / 2
    xy = torch.stack([t * t.cos(), t * t.sin()], dim=1) + 0.1 * torch.randn(n, 2, generator=g)
    return (xy - xy.mean(0)) / xy.std(0)


class Denoiser(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.point = nn.Linear(2, dim)
        self.body = nn.Sequential(nn.SiLU(), nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim), nn.SiLU())
        self.noise = nn.Linear(dim, 2)
        freqs = torch.exp(torch.linspace(0, math.log(200.0), 8))
        self.register_buffer("freqs", freqs)

    def forward(self, x, t):
        angle = t[:, None].float() / T * self.freqs
        emb = torch.cat([angle.sin(), angle.cos()], dim=1)
        return self.noise(self.body(self.point(x) + self.time(emb)))


def run(rank, args):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(args.port)
    dist.init_process_group(backend="gloo", rank=rank, world_size=args.workers)
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    dataset = TensorDataset(spirals(1024))
    sampler = DistributedSampler(dataset, num_replicas=args.workers, rank=rank, shuffle=True)
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler)

    net = Denoiser()
    ddp_net = DistributedDataParallel(net)
    opt = torch.optim.Adam(ddp_net.parameters(), lr=args.lr)

    betas = torch.linspace(1e-3, 0.15, T)
    alpha_bar = torch.cumprod(1 - betas, dim=0)
    noise_gen = torch.Generator().manual_seed(args.seed + 1000 + rank)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        losses = []
        for (x0,) in loader:
            t = torch.randint(0, T, (len(x0),), generator=noise_gen)
            eps = torch.randn(x0.shape, generator=noise_gen)
            a = alpha_bar[t][:, None]
            xt = a.sqrt() * x0 + (1 - a).sqrt() * eps
            loss = F.mse_loss(ddp_net(xt, t), eps)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        if rank == 0:
            print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}", flush=True)

    if rank == 0:
        torch.save(net.state_dict(), "denoiser.pt")
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=29611)
    args = parser.parse_args()
    mp.spawn(run, args=(args,), nprocs=args.workers)


if __name__ == "__main__":
    main()
