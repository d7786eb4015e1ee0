import argparse

import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Tagger(nn.Module):
    def __init__(self, vocabulary, tags, width=32):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.place = nn.Parameter(torch.randn(10, width) * 0.05)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True) for _ in range(2)
        )
        self.out = nn.Linear(width, tags)

    def forward(self, ids):
        h = self.words(ids) + self.place
        for block in self.blocks:
            h = block(h)
        return self.out(h)


class Trainer:
    def __init__(self, args):
        self.args = args
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        mesh = init_device_mesh("cpu", (self.world,))
        torch.manual_seed(args.seed)
        self.model = Tagger(40, 6)
        for block in self.model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr, weight_decay=0.0)
        self.generator = torch.Generator().manual_seed(args.seed + self.rank)
        self.rule = torch.randint(6, (40,), generator=torch.Generator().manual_seed(1))

    def batch(self):
        ids = torch.randint(40, (24, 10), generator=self.generator)
        return ids, (self.rule[ids] + self.rule[ids.roll(1, 1)]) % 6

    def step(self):
        ids, tags = self.batch()
        loss = nn.functional.cross_entropy(self.model(ids).flatten(0, 1), tags.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        shards = [p.grad.to_local() for p in self.model.parameters()]
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(s) for s in shards]))
        torch._foreach_mul_(shards, torch.clamp(self.args.clip / (norm + 1e-6), max=1.0))
        self.optimizer.step()
        return loss.item()

    def run(self):
        for step in range(self.args.steps):
            loss = self.step()
            if self.rank == 0 and step % 20 == 0:
                print(f"{step:4d} {loss:.4f}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=80)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--clip", type=float, default=0.3)
    p.add_argument("--seed", type=int, default=2)
    dist.init_process_group("gloo")
    Trainer(p.parse_args()).run()
    dist.destroy_process_group()
