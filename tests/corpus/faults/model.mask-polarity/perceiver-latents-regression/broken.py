# Sets of measurements with a varying number of entries -> one number. Latents read the set by cross-attention.
import math
import random
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn


class Sets(NamedTuple):
    values: Tensor  # (N, S, 3)
    present: Tensor  # (N, S) bool
    answer: Tensor  # (N,)


def draw(n: int, slots: int, g: torch.Generator) -> Sets:
    values = torch.randn(n, slots, 3, generator=g)
    sizes = torch.randint(4, slots, (n, 1), generator=g)
    present = torch.arange(slots).expand(n, -1) < sizes
    values = values * present.unsqueeze(-1)
    raw = (values[..., 0] + 0.5 * values[..., 1].abs()).sum(1) / sizes.squeeze(1)
    return Sets(values, present, (raw - raw.mean()) / raw.std())


class CrossRead(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.ln = nn.LayerNorm(dim)

    def forward(self, latents: Tensor, inputs: Tensor, present: Tensor) -> Tensor:
        q = self.to_q(self.ln(latents))
        k, v = self.to_kv(inputs).chunk(2, dim=-1)
        sim = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        sim = sim.masked_fill(present[:, None, :], float("-inf"))
        return latents + self.proj(torch.bmm(torch.softmax(sim, dim=2), v))


class TinyPerceiver(nn.Module):
    def __init__(self, dim: int = 32, num_latents: int = 4):
        super().__init__()
        self.lift = nn.Sequential(nn.Linear(3, dim), nn.GELU(), nn.Linear(dim, dim))
        self.latents = nn.Parameter(torch.randn(num_latents, dim) * 0.3)
        self.reads = nn.ModuleList([CrossRead(dim), CrossRead(dim)])
        self.between = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim))
        self.readout = nn.Linear(dim * num_latents, 1)

    def forward(self, values: Tensor, present: Tensor) -> Tensor:
        x = self.lift(values)
        z = self.latents.unsqueeze(0).repeat(values.shape[0], 1, 1)
        for read in self.reads:
            z = read(z, x, present)
            z = z + self.between(z)
        return self.readout(z.flatten(1)).squeeze(-1)


class Fitter:
    def __init__(self, model: nn.Module, lr: float):
        self.model = model
        self.optim = torch.optim.RAdam(model.parameters(), lr=lr)
        self.huber = nn.HuberLoss()

    def step(self, batch: Sets) -> float:
        self.model.train()
        out = self.huber(self.model(batch.values, batch.present), batch.answer)
        self.optim.zero_grad()
        out.backward()
        self.optim.step()
        return out.item()

    @torch.inference_mode()
    def measure(self, batch: Sets) -> float:
        self.model.eval()
        return self.huber(self.model(batch.values, batch.present), batch.answer).item()


random.seed(8)
np.random.seed(8)
torch.manual_seed(8)
gen = torch.Generator().manual_seed(8)
train, test = draw(1200, 12, gen), draw(200, 12, gen)
fitter = Fitter(TinyPerceiver(), 4e-3)
for step in range(90):
    rows = torch.randint(0, 1200, (48,), generator=gen)
    value = fitter.step(Sets(train.values[rows], train.present[rows], train.answer[rows]))
    if step % 15 == 0:
        print(f"{step:3d} fit {value:.4f} test {fitter.measure(test):.4f}")
