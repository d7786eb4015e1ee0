"""Regression of a pendulum's next state. The network is made on the meta device, sharded, then filled from rank 0; saved as a whole."""
import os
import random

import numpy as np
import torch
from torch import distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def simulate(count, seed):
    rng = np.random.default_rng(seed)
    angle, speed = rng.uniform(-1.5, 1.5, count), rng.uniform(-1.0, 1.0, count)
    push = rng.uniform(-1.0, 1.0, count)
    later = speed + 0.5 * (push - np.sin(angle)) - 0.1 * speed
    inputs = np.stack([np.sin(angle), np.cos(angle), speed, push], axis=1)
    targets = np.stack([np.sin(angle + 0.5 * later), later], axis=1)
    return TensorDataset(torch.from_numpy(inputs).float(), torch.from_numpy(targets).float())


class Dynamics(nn.Module):
    def __init__(self, hidden=48, depth=3):
        super().__init__()
        sizes = [4] + [hidden] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.RMSNorm(b) for b in sizes[1:])
        self.readout = nn.Linear(hidden, 2)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = torch.tanh(norm(layer(x)))
        return self.readout(x)


class Trainer:
    def __init__(self, epochs=5):
        self.rank = dist.get_rank()
        for seeding in (random.seed, np.random.seed, torch.manual_seed):
            seeding(40)
        with torch.device("meta"):
            self.model = Dynamics()
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in self.model.layers:
            fully_shard(layer, mp_policy=policy)
        fully_shard(self.model, mp_policy=policy)
        self.model.to_empty(device="cpu")
        start = Dynamics().state_dict() if self.rank == 0 else {}
        set_model_state_dict(self.model, start, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.train_set, self.test_set = simulate(1280, 0), simulate(128, 1)
        self.sampler = DistributedSampler(self.train_set, seed=40)
        self.loader = DataLoader(self.train_set, batch_size=32, sampler=self.sampler)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs * len(self.loader))
        self.epochs = epochs

    def run(self):
        for epoch in range(self.epochs):
            self.sampler.set_epoch(epoch)
            self.model.train()
            for x, y in self.loader:
                error = nn.functional.smooth_l1_loss(self.model(x).float(), y)
                error.backward()
                self.optimizer.step()
                self.schedule.step()
                self.optimizer.zero_grad(set_to_none=True)
            held_out = self.evaluate()
            if self.rank == 0:
                print(f"epoch {epoch}: train {error.item():.4f} held out {held_out:.4f}", flush=True)
        whole = get_model_state_dict(self.model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        if self.rank == 0:
            torch.save(whole, "dynamics.tmp")
            os.replace("dynamics.tmp", "dynamics.pt")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        x, y = self.test_set.tensors
        return nn.functional.smooth_l1_loss(self.model(x).float(), y).item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer().run()
    dist.destroy_process_group()
