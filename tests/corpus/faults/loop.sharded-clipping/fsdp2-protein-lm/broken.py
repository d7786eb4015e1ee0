"""Masked residue model for short protein chains, sharded with fully_shard. torchrun --nproc_per_node 2 train.py"""

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

RESIDUES, MASK = 20, 20
LENGTH = 24


def chains(count, seed):
    """Each family is a fixed chain; members differ in a few places."""
    families = np.random.default_rng(0).integers(0, RESIDUES, size=(12, LENGTH))
    rng = np.random.default_rng(seed)
    rows = families[rng.integers(0, 12, size=count)]
    mutated = rng.random(rows.shape) < 0.05
    return torch.from_numpy(np.where(mutated, rng.integers(0, RESIDUES, size=rows.shape), rows))


class ResidueModel(nn.Module):
    def __init__(self, width=64, heads=4, depth=2):
        super().__init__()
        self.tokens = nn.Embedding(RESIDUES + 1, width)
        self.places = nn.Parameter(torch.randn(LENGTH, width) * 0.02)
        self.layers = nn.ModuleList(
            [nn.TransformerEncoderLayer(width, heads, 128, dropout=0.0, batch_first=True, norm_first=True) for _ in range(depth)]
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, RESIDUES)

    def forward(self, ids):
        h = self.tokens(ids) + self.places
        for layer in self.layers:
            h = layer(h)
        return self.out(self.norm(h))


def clip_gradients(params, max_norm):
    grads = [p.grad.to_local() for p in params if p.grad is not None]
    squares = torch.stack([g.pow(2).sum() for g in grads]).sum()
    norm = squares.sqrt()
    scale = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    for g in grads:
        g.mul_(scale)
    return norm


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(6)
    np.random.seed(6)
    mesh = init_device_mesh("cpu", (world,))

    model = ResidueModel()
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)

    data = chains(1200, seed=1)
    generator = torch.Generator().manual_seed(50 + rank)
    mine = data[rank::world]
    for step in range(80):
        ids = mine[torch.randint(len(mine), (24,), generator=generator)]
        hidden = torch.rand(ids.shape, generator=generator) < 0.2
        hidden[:, 0] |= ~hidden.any(dim=1)
        logits = model(ids.masked_fill(hidden, MASK))
        loss = F.cross_entropy(logits[hidden], ids[hidden])
        optimizer.zero_grad()
        loss.backward()
        norm = clip_gradients(list(model.parameters()), 0.5)
        optimizer.step()
        if step % 10 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f} grad norm {norm.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
