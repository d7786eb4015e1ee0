"""Per-minute regression on traces of different lengths: a convolutional filter bank predicts the smoothed level."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


@dataclass
class Config:
    train_size: int = 320
    valid_size: int = 96
    batch_size: int = 16
    epochs: int = 4
    lr: float = 3e-3
    width: int = 24
    seed: int = 5


def make_traces(count, rng):
    traces = []
    for _ in range(count):
        length = int(rng.integers(12, 60))
        minutes = np.arange(length)
        level = np.sin(minutes / rng.uniform(4, 9) + rng.uniform(0, 6)) + 0.4 * np.cos(minutes / 3.0)
        meal = (rng.random(length) < 0.1).astype(np.float32)
        noisy = level + rng.normal(0, 0.4, length)
        x = torch.tensor(np.stack([noisy, meal - 0.1], axis=1), dtype=torch.float32)
        y = torch.tensor(1.5 + level + 0.5 * np.convolve(meal, [0.5, 0.3, 0.2])[:length], dtype=torch.float32)
        traces.append((x, y))
    return traces


def collate(items):
    xs, ys = zip(*items, strict=True)
    lengths = torch.tensor([len(y) for y in ys])
    x = pad_sequence(xs, batch_first=True)
    y = pad_sequence(ys, batch_first=True)
    valid = torch.arange(y.size(1))[None, :] < lengths[:, None]
    return x, y, valid


class FilterBank(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv1d(2, width, 5, padding=2)
        self.b = nn.Conv1d(width, width, 5, padding=2)
        self.out = nn.Conv1d(width, 1, 1)

    def forward(self, x, valid):
        keep = valid[:, None, :].float()
        h = F.gelu(self.a(x.transpose(1, 2))) * keep
        h = (h + F.gelu(self.b(h))) * keep
        return (self.out(h) * keep).squeeze(1)


class Fitter:
    def __init__(self, cfg):
        self.cfg = cfg
        rng = np.random.default_rng(cfg.seed)
        self.train = DataLoader(make_traces(cfg.train_size, rng), cfg.batch_size, shuffle=True, collate_fn=collate)
        self.valid = DataLoader(make_traces(cfg.valid_size, rng), cfg.batch_size, collate_fn=collate)
        self.model = FilterBank(cfg.width)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            running = []
            for x, y, valid in self.train:
                pred = self.model(x, valid)
                loss = F.smooth_l1_loss(pred[valid], y[valid])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                running.append(loss.item())
            print(f"epoch {epoch}  loss {np.mean(running):.4f}  valid MAE {self.validate():.4f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        error, count = 0.0, 0
        for x, y, valid in self.valid:
            gap = (self.model(x, valid) - y).abs()[valid]
            error += gap.sum().item()
            count += gap.numel()
        return error / count


if __name__ == "__main__":
    cfg = Config()
    torch.manual_seed(cfg.seed)
    np.random.seed(cfg.seed)
    Fitter(cfg).fit()
