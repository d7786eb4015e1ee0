import argparse
import random

import numpy as np
import torch
import torch.nn as nn


def parse():
    p = argparse.ArgumentParser("dilated convolutions, one step ahead at every hour")
    p.add_argument("--channels", type=int, default=24)
    p.add_argument("--levels", type=int, default=3)
    p.add_argument("--kernel", type=int, default=3)
    p.add_argument("--iters", type=int, default=70)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=4)
    return p.parse_args()


class TemporalBlock(nn.Module):
    def __init__(self, cin, cout, k, dilation):
        super().__init__()
        self.trim = (k - 1) * dilation
        self.conv = nn.Conv1d(cin, cout, k, dilation=dilation, padding=self.trim // 2)
        self.act = nn.GELU()
        self.skip = nn.Conv1d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        y = self.conv(x)[..., : x.shape[-1]]
        return self.skip(x) + self.act(y)


class TCN(nn.Module):
    def __init__(self, width, levels, k):
        super().__init__()
        blocks = []
        for i in range(levels):
            blocks.append(TemporalBlock(1 if i == 0 else width, width, k, 2**i))
        self.blocks = nn.Sequential(*blocks)
        self.readout = nn.Conv1d(width, 1, 1)

    def forward(self, series):
        return self.readout(self.blocks(series.unsqueeze(1))).squeeze(1)


def load_curves(n, length, rng):
    t = np.arange(length + 1)
    out = []
    for _ in range(n):
        a, b = rng.uniform(0.5, 1.2, 2)
        p, q = rng.uniform(0, 6.28, 2)
        s = a * np.sin(t / 3 + p) + b * np.sin(t / 7.5 + q) + rng.normal(0, 0.25, length + 1).cumsum() * 0.3
        out.append((s - s.mean()) / s.std())
    return torch.tensor(np.stack(out), dtype=torch.float32)


if __name__ == "__main__":
    args = parse()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    curves = load_curves(640, 48, rng)
    fit, val = curves[:512], curves[512:]
    model = TCN(args.channels, args.levels, args.kernel)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.0)
    mse = nn.MSELoss()
    for i in range(args.iters):
        pick = torch.randperm(len(fit))[:64]
        batch = fit[pick]
        optimizer.zero_grad(set_to_none=True)
        loss = mse(model(batch[:, :-1]), batch[:, 1:])
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            model.eval()
            with torch.no_grad():
                score = mse(model(val[:, :-1]), val[:, 1:]).item()
            model.train()
            print(f"{i:03d} mse {loss.item():.4f} val {score:.4f}")
