"""A tiny language model, every block sharded over the processes, two micro-batches per step, one norm over all shards."""
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

VOCAB, CONTEXT, WIDTH, HEADS = 24, 20, 32, 4


def text(count, seed):
    """Every token follows from the one before it, most of the time."""
    g = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, VOCAB, (count, CONTEXT + 1), generator=g)
    for t in range(1, CONTEXT + 1):
        follows = (rows[:, t - 1] + 7) % VOCAB
        keep = torch.rand(count, generator=g) < 0.9
        rows[:, t] = torch.where(keep, follows, rows[:, t])
    return rows


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.08)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(5)
    model = LM()
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}], lr=6e-3)
    steps = 60
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min((s + 1) / 6, 0.5 + 0.5 * math.cos(math.pi * s / steps)))
    rows = text(4096, 1)
    draw = torch.Generator().manual_seed(77 + rank)
    mine = rows[rank::world]
    for step in range(steps):
        optimizer.zero_grad()
        for micro in range(2):
            model.set_requires_gradient_sync(micro == 1)
            picked = mine[torch.randint(len(mine), (16,), generator=draw)]
            logits = model(picked[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), picked[:, 1:].flatten())
            (loss / 2).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 10 == 9:
            shown = norm.full_tensor().item()
            if rank == 0:
                print(f"step {step + 1} loss {loss.item():.3f} norm {shown:.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
