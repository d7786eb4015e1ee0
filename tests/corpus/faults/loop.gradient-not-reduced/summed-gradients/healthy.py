"""Pitch of a short tone, on several processes. Gradients are exchanged by hand, in one flat buffer."""
import math

import torch
import torch.distributed as dist
import torch.nn as nn
from torch._utils import _flatten_dense_tensors as flatten
from torch._utils import _unflatten_dense_tensors as unflatten
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Tones(Dataset):
    def __init__(self, count):
        g = torch.Generator().manual_seed(3)
        self.pitch = torch.rand(count, generator=g) * 4 + 1
        phase = torch.rand(count, 1, generator=g) * 2 * math.pi
        time = torch.linspace(0, 2 * math.pi, 48)
        self.wave = torch.sin(self.pitch[:, None] * time + phase) + 0.2 * torch.randn(count, 48, generator=g)

    def __len__(self):
        return len(self.pitch)

    def __getitem__(self, i):
        return self.wave[i], (self.pitch[i] - 3) / 1.15


def exchange(params):
    grads = [p.grad for p in params]
    flat = flatten(grads)
    dist.all_reduce(flat)
    flat.div_(dist.get_world_size())
    for grad, new in zip(grads, unflatten(flat, grads)):
        grad.copy_(new)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(14)
    tones = Tones(960)
    sampler = DistributedSampler(tones)
    loader = DataLoader(tones, batch_size=24, sampler=sampler, drop_last=True)
    net = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1), nn.Flatten(0))
    params = list(net.parameters())
    optimizer = torch.optim.SGD(params, lr=0.05, momentum=0.8)
    loss_fn = nn.MSELoss()
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for wave, pitch in loader:
            optimizer.zero_grad()
            loss = loss_fn(net(wave), pitch)
            loss.backward()
            exchange(params)
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} last loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


main()
