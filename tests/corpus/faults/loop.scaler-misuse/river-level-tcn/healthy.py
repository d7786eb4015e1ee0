from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class Config:
    history: int = 48
    channels: int = 24
    lr: float = 1e-3
    epochs: int = 4
    batch_size: int = 32
    grad_clip: float = 1.0
    seed: int = 19


class RiverLevels(Dataset):
    """Predict the standardised level one hour ahead."""

    def __init__(self, n, cfg, seed):
        rng = np.random.default_rng(seed)
        series = np.zeros(n + cfg.history + 1)
        for t in range(2, len(series)):
            series[t] = 1.6 * series[t - 1] - 0.7 * series[t - 2] + rng.normal()
        series = (series - series.mean()) / series.std()
        self.series = torch.tensor(series, dtype=torch.float32)
        self.n, self.history = n, cfg.history

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.series[i : i + self.history].unsqueeze(0), self.series[i + self.history]


class CausalConv(nn.Module):
    def __init__(self, cin, cout, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(cin, cout, 3, dilation=dilation)

    def forward(self, x):
        return torch.relu(self.conv(nn.functional.pad(x, (self.pad, 0))))


class LevelTCN(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        c = cfg.channels
        self.stack = nn.Sequential(CausalConv(1, c, 1), CausalConv(c, c, 2), CausalConv(c, c, 4), CausalConv(c, c, 8))
        self.read = nn.Linear(c, 1)

    def forward(self, x):
        return self.read(self.stack(x)[..., -1]).squeeze(-1)


class Engine:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = LevelTCN(cfg)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=0.0)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
        self.loss_fn = nn.MSELoss()

    def train_step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            pred = self.model(x)
            loss = self.loss_fn(pred.float(), y)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        total = sum(self.loss_fn(self.model(x), y).item() * len(y) for x, y in loader)
        self.model.train()
        return total / len(loader.dataset)

    def run(self):
        train = DataLoader(RiverLevels(800, self.cfg, 1), self.cfg.batch_size, shuffle=True)
        valid = DataLoader(RiverLevels(200, self.cfg, 2), 100)
        self.model.train()
        for epoch in range(self.cfg.epochs):
            losses = [self.train_step(x, y) for x, y in train]
            print(f"epoch {epoch} train {np.mean(losses):.4f} valid {self.validate(valid):.4f} scale {self.scaler.get_scale():g}")


if __name__ == "__main__":
    config = Config()
    torch.manual_seed(config.seed)
    np.random.seed(config.seed)
    Engine(config).run()
