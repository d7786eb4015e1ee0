import torch
import torch.nn.functional as F
from torch import distributed as dist
from torch import nn


def gather(mine):
    parts = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine.contiguous())
    parts[dist.get_rank()] = mine
    return torch.cat(parts)


class TwoTowers(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, width))
        self.right = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, width))

    def forward(self, a, b):
        return F.normalize(self.left(a), dim=-1), F.normalize(self.right(b), dim=-1)


def pairs(n):
    g = torch.Generator().manual_seed(77)
    hidden = torch.randn(n, 8, generator=g)
    a = hidden @ torch.randn(8, 20, generator=g) / 3 + 0.1 * torch.randn(n, 20, generator=g)
    b = hidden @ torch.randn(8, 12, generator=g) / 3 + 0.1 * torch.randn(n, 12, generator=g)
    return a, b


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(6)
model = TwoTowers()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
a, b = pairs(983)
batch = 32
for epoch in range(3):
    order = torch.randperm(len(a), generator=torch.Generator().manual_seed(epoch))
    mine = order[rank::world]
    for rows in mine.split(batch):
        left, right = model(a[rows], b[rows])
        scores = left @ gather(right).T / 0.1
        target = rank * len(rows) + torch.arange(len(rows))
        loss = F.cross_entropy(scores, target)
        optimizer.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world
        optimizer.step()
    if rank == 0:
        print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
