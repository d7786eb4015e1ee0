"""Mixed precision with two optimizers behind one scaler, gradient windows of uneven length, clipping and a schedule that waits for real steps."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Settings:
    window: int = 3
    epochs: int = 5
    max_norm: float = 1.0
    seed: int = 19


def spectra(n, seed):
    rng = np.random.default_rng(seed)
    peaks = np.random.default_rng(50).uniform(4, 44, (5, 3))
    kind = rng.integers(0, 5, n)
    axis = np.arange(48)
    x = sum(np.exp(-((axis - peaks[kind, j : j + 1] - rng.normal(0, 0.8, (n, 1))) ** 2) / 6) for j in range(3))
    x = x + 0.35 * rng.standard_normal(x.shape)
    x = (x - x.mean()) / x.std()
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(kind))


class Spectrometer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(1, 16, 5, padding=2), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 24, 5, padding=2), nn.ReLU())
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(24 * 24, 48), nn.ReLU(), nn.Linear(48, 5))

    def forward(self, x):
        return self.head(self.stem(x.unsqueeze(1)))


def split(module, decay):
    matrices = [p for p in module.parameters() if p.ndim > 1]
    vectors = [p for p in module.parameters() if p.ndim <= 1]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def main():
    cfg = Settings()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    loader = DataLoader(spectra(1100, 1), batch_size=20, shuffle=True)
    valid = DataLoader(spectra(300, 2), batch_size=100)
    net = Spectrometer()
    optimizers = [torch.optim.RAdam(split(net.stem, 1e-2), lr=4e-3, decoupled_weight_decay=True), torch.optim.SGD(split(net.head, 1e-4), lr=0.03, momentum=0.9)]
    windows_per_epoch = -(-len(loader) // cfg.window)
    schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(o, cfg.epochs * windows_per_epoch, eta_min=1e-4) for o in optimizers]
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**15)

    for epoch in range(cfg.epochs):
        net.train()
        losses = []
        for i, (x, kind) in enumerate(loader):
            in_window = min(cfg.window, len(loader) - i // cfg.window * cfg.window)
            with torch.autocast("cpu", dtype=torch.float16):
                logits = net(x)
            loss = nn.functional.cross_entropy(logits.float(), kind)
            scaler.scale(loss / in_window).backward()
            losses.append(loss.item())
            if (i + 1) % cfg.window and i + 1 != len(loader):
                continue
            for o in optimizers:
                scaler.unscale_(o)
            nn.utils.clip_grad_norm_(net.parameters(), cfg.max_norm)
            before = scaler.get_scale()
            for o in optimizers:
                scaler.step(o)
            scaler.update()
            if scaler.get_scale() >= before:
                for s in schedules:
                    s.step()
            for o in optimizers:
                o.zero_grad(set_to_none=True)
        net.eval()
        with torch.no_grad():
            hits = sum((net(x).argmax(1) == kind).sum().item() for x, kind in valid)
        print(f"epoch {epoch} loss {np.mean(losses):.4f} accuracy {hits / 300:.3f} scale {scaler.get_scale():.0f}")


if __name__ == "__main__":
    main()
