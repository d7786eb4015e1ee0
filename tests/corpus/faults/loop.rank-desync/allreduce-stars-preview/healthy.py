"""Star spectra classification with hand-made data parallelism (gradients averaged by all_reduce). torchrun --nproc_per_node=2"""
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def spectra(n, seed, bins=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    grid = np.linspace(0, 1, bins)
    centre = 0.2 + 0.2 * y[:, None] + 0.03 * rng.standard_normal((n, 1))
    x = -1.5 * np.exp(-((grid - centre) ** 2) / 0.002) + 0.4 * rng.standard_normal((n, bins))
    x = (x - x.mean()) / x.std()
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def preview(x, y, rank):
    """Show a few random spectra in the log of the first process."""
    if rank == 0:
        for i in torch.randperm(len(x))[:3].tolist():
            print(f"sample {i}: class {y[i].item()} deepest bin {x[i].argmin().item()}", flush=True)


class SpectrumNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 12, 7, padding=3)
        self.conv2 = nn.Conv1d(12, 16, 7, stride=2, padding=3)
        self.fc = nn.Linear(16 * 30, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x.unsqueeze(1)))
        x = F.relu(self.conv2(x))
        return self.fc(x.flatten(1))


def average_gradients(model):
    world = float(dist.get_world_size())
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def run(rank, world, epochs=4, batch=32):
    torch.manual_seed(1234)
    np.random.seed(1234)
    x, y = spectra(960, seed=1)
    preview(x, y, rank)
    model = SpectrumNet()
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    shuffle = torch.Generator().manual_seed(99)
    for epoch in range(epochs):
        order = torch.randperm(len(x), generator=shuffle)[rank::world]
        total = 0.0
        for idx in order.split(batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            average_gradients(model)
            optimizer.step()
            total += loss.item() * len(idx)
        print(f"rank {rank} epoch {epoch} loss {total / len(order):.4f}", flush=True)
    if rank == 0:
        model.eval()
        xv, yv = spectra(200, seed=2)
        with torch.no_grad():
            print(f"validation accuracy {(model(xv).argmax(1) == yv).float().mean():.3f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(int(os.environ["RANK"]), dist.get_world_size())
    dist.destroy_process_group()
