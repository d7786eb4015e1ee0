"""Sales forecast with a sharded MLP. Start: torchrun --nproc-per-node 2 healthy.py"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def build(mesh):
    net = nn.Sequential(nn.Linear(14, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def clip_(params, limit):
    square = sum((p.grad.to_local() ** 2).sum() for p in params)
    dist.all_reduce(square)
    factor = limit / (square.sqrt() + 1e-6)
    if factor < 1:
        for p in params:
            p.grad.to_local().mul_(factor)


def shops(n):
    g = torch.Generator().manual_seed(31)
    features = torch.randn(n, 14, generator=g)
    sales = 3 * features[:, :1] - 2 * features[:, 1:2] * features[:, 2:3] + 0.1 * torch.randn(n, 1, generator=g)
    return TensorDataset(features, (sales - sales.mean()) / sales.std())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(8)
    net = build(mesh)
    params = list(net.parameters())
    opt = torch.optim.SGD(params, lr=0.1, momentum=0.9)
    data = shops(1024)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        total = 0.0
        for features, sales in loader:
            loss = nn.functional.mse_loss(net(features), sales)
            opt.zero_grad()
            loss.backward()
            clip_(params, 0.5)
            opt.step()
            total += loss.item()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} mse {total / len(loader):.4f}", flush=True)
    dist.destroy_process_group()
