"""Denoiser of short signals trained in two halves, as on a machine that may be taken away."""
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, length=20, width=64):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(length, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, length))

    def forward(self, x):
        return self.f(x)


class Job:
    def __init__(self, total):
        self.model = Denoiser()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=4e-3, betas=(0.9, 0.98))
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=total, eta_min=2e-4)
        self.step = 0

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "rng": torch.get_rng_state(),
            "step": self.step,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["rng"])
        self.step = state["step"]

    def advance(self, until):
        while self.step < until:
            t = torch.linspace(0, 1, 20)
            clean = torch.sin(6.28 * (torch.rand(48, 1) * 2 + 0.5) * t + 6.28 * torch.rand(48, 1)) * 1.4
            noisy = clean + 0.3 * torch.randn_like(clean)
            loss = nn.functional.mse_loss(self.model(noisy), clean)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            self.step += 1
            if self.step % 12 == 0:
                print(f"step {self.step} loss {loss.item():.4f} lr {self.schedule.get_last_lr()[0]:.5f}")


def main(total=120):
    random.seed(29)
    np.random.seed(29)
    torch.manual_seed(29)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.pt"
        first = Job(total)
        first.advance(total // 2)
        torch.save(first.state(), path)
        second = Job(total)
        second.load(torch.load(path))
        second.advance(total)


main()
