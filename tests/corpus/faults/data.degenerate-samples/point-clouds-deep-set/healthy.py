"""Deep set over lidar returns of one object; the batch is flat, with the number of points of each object."""
import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Scan:
    points: Tensor
    label: int


def simulate(generator, count):
    """Spheres (0), slabs (1) and poles (2), seen through a field of view that cuts off what lies behind 2.5 metres."""
    scans = []
    for _ in range(count):
        label = random.randrange(3)
        n = random.randint(12, 40)
        cloud = torch.randn(n, 3, generator=generator)
        if label == 0:
            cloud = cloud / cloud.norm(dim=1, keepdim=True)
        else:
            cloud = cloud * torch.tensor([[1.0, 1.0, 0.1], [0.2, 0.2, 1.4]][label - 1])
        offset = 9.0 if random.random() < 0.002 else 0.0
        visible = (cloud[:, 2] + offset).abs() < 2.5
        scans.append(Scan(cloud[visible], label))
    return scans


def batches(scans, size):
    random.shuffle(scans)
    for start in range(0, len(scans), size):
        part = scans[start : start + size]
        counts = torch.tensor([len(s.points) for s in part])
        yield torch.cat([s.points for s in part]), counts, torch.tensor([s.label for s in part])


class DeepSet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.whole = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))

    def forward(self, points, counts):
        owner = torch.repeat_interleave(torch.arange(len(counts)), counts)
        h = self.point(points)
        pooled = torch.zeros(len(counts), h.size(1)).index_add(0, owner, h)
        return self.whole(pooled / counts.unsqueeze(1))


def main():
    random.seed(8)
    torch.manual_seed(8)
    generator = torch.Generator().manual_seed(8)
    scans = simulate(generator, 1600)
    scans = [scan for scan in scans if len(scan.points) >= 3]
    model = DeepSet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    for epoch in range(2):
        for step, (points, counts, labels) in enumerate(batches(scans, 32)):
            logits = model(points, counts)
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                hit = (logits.argmax(1) == labels).float().mean()
                print(f"{epoch}.{step:02d} loss {loss.item():.4f} accuracy {hit.item():.2f}")


if __name__ == "__main__":
    main()
