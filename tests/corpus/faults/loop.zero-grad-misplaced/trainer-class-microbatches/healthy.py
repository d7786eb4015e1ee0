"""Ward triage from vital signs: a Trainer class with gradient accumulation."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class TrainerConfig:
    max_epochs: int = 5
    micro_batch_size: int = 8
    grad_accum: int = 4
    lr: float = 3e-3
    grad_clip: float = 1.0
    seed: int = 4


class TriageNet(nn.Module):
    def __init__(self, num_vitals, num_levels, width=64):
        super().__init__()
        self.inp = nn.Linear(num_vitals, width)
        self.block = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.out = nn.Linear(width, num_levels)

    def forward(self, x):
        h = self.inp(x)
        return self.out(F.gelu(h + self.block(h)))


class Trainer:
    def __init__(self, config, model, train_set, val_set):
        self.config, self.model = config, model
        self.train_loader = DataLoader(train_set, batch_size=config.micro_batch_size, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val_set, batch_size=100)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, weight_decay=0.0)
        self.iter_num = 0

    def train_step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        (loss / self.config.grad_accum).backward()
        self.iter_num += 1
        if self.iter_num % self.config.grad_accum == 0:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_clip)
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        correct = total = 0
        for x, y in self.val_loader:
            correct += (self.model(x).argmax(-1) == y).sum().item()
            total += len(y)
        return correct / total

    def fit(self):
        for epoch in range(self.config.max_epochs):
            self.model.train()
            losses = [self.train_step(x, y) for x, y in self.train_loader]
            print(f"epoch {epoch}: train loss {np.mean(losses):.4f} | val acc {self.validate():.3f}")


def vitals(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 12)).astype(np.float32)
    risk = x[:, 0] * x[:, 1] + x[:, 2] + 0.5 * np.abs(x[:, 3]) - 0.3 * x[:, 4] + 0.2 * rng.standard_normal(n)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(np.digitize(risk, [-0.5, 0.9])))


if __name__ == "__main__":
    cfg = TrainerConfig()
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    Trainer(cfg, TriageNet(12, 3), vitals(640, 1), vitals(200, 2)).fit()
