"""Audio frames on two processes; running statistics stay local within an epoch and are averaged before each validation."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

BATCH, EPOCHS, FRAMES = 24, 4, 1440


def frames(count, seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, count)
    bands = rng.normal(0, 1.0, (count, 20))
    for k in range(4):
        bands[label == k, 5 * k : 5 * k + 5] += 1.1
    return torch.tensor(bands, dtype=torch.float32), torch.tensor(label)


def average_buffers(module):
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point():
            dist.all_reduce(buffer)
            buffer /= dist.get_world_size()


def evaluate(module, inputs, labels):
    module.eval()
    with torch.inference_mode():
        loss = nn.functional.cross_entropy(module(inputs), labels).item()
    module.train()
    return loss


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(8)
    net = nn.Sequential(
        nn.Linear(20, 64), nn.BatchNorm1d(64), nn.SiLU(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.SiLU(), nn.Linear(32, 4)
    )
    model = DDP(net, broadcast_buffers=False)
    inputs, labels = frames(FRAMES, 1)
    held_out = frames(300, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        order = torch.randperm(FRAMES, generator=torch.Generator().manual_seed(epoch))[rank::world]
        for part in order.split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[part]), labels[part])
            loss.backward()
            optimizer.step()
        average_buffers(net)
        score = evaluate(net, *held_out)
        if rank == 0:
            print(f"epoch {epoch}: train {loss.item():.3f} held out {score:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
