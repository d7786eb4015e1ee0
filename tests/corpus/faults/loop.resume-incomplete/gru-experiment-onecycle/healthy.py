"""Trend detection with a GRU. An experiment object can be snapshot to disk and restored after a pre-emption."""
from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TrendNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(2, 24, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(24, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, h = self.gru(x)
        return self.fc(self.drop(h[-1]))


class Experiment:
    def __init__(self, epochs: int, data: TensorDataset) -> None:
        self.loader = DataLoader(data, batch_size=32, shuffle=True)
        self.net = TrendNet()
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-2, weight_decay=0.0)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(self.opt, max_lr=1.5e-2, total_steps=epochs * len(self.loader))
        self.epochs = epochs
        self.epoch = 0

    def snapshot(self, path: Path) -> None:
        payload = dict(
            net=self.net.state_dict(),
            opt=self.opt.state_dict(),
            sched=self.sched.state_dict(),
            epoch=self.epoch,
            torch_rng=torch.get_rng_state(),
        )
        partial = path.with_suffix(".partial")
        torch.save(payload, partial)
        os.replace(partial, path)

    def restore(self, path: Path) -> None:
        payload = torch.load(path, weights_only=True)
        self.net.load_state_dict(payload["net"])
        self.opt.load_state_dict(payload["opt"])
        self.sched.load_state_dict(payload["sched"])
        self.epoch = payload["epoch"]
        torch.set_rng_state(payload["torch_rng"])

    def run(self, until: int) -> None:
        while self.epoch < until:
            self.net.train()
            losses = []
            for x, y in self.loader:
                self.opt.zero_grad()
                loss = nn.functional.cross_entropy(self.net(x), y)
                loss.backward()
                self.opt.step()
                self.sched.step()
                losses.append(loss.item())
            self.epoch += 1
            print(f"epoch {self.epoch} loss {np.mean(losses):.4f} lr {self.opt.param_groups[0]['lr']:.2e}")

    @torch.no_grad()
    def accuracy(self, data: TensorDataset) -> float:
        self.net.eval()
        x, y = data.tensors
        return (self.net(x).argmax(1) == y).float().mean().item()


def trends(n: int) -> TensorDataset:
    label = np.random.randint(3, size=n)
    slope = (label - 1)[:, None] * 0.08
    t = np.arange(15)[None, :] - 7.0
    price = slope * t + np.random.normal(0, 0.6, size=(n, 15))
    volume = np.random.normal(size=(n, 15))
    x = np.stack([price / 0.68, volume], axis=-1).astype(np.float32)
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(label))


def main() -> None:
    random.seed(6)
    np.random.seed(6)
    torch.manual_seed(6)
    train, test = trends(800), trends(200)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "snapshot.pt"
        first = Experiment(5, train)
        first.run(until=3)
        first.snapshot(path)
        second = Experiment(5, train)
        second.restore(path)
        second.run(until=5)
    print(f"test accuracy {second.accuracy(test):.3f}")


if __name__ == "__main__":
    main()
