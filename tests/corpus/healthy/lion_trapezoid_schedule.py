"""Sketch classifier with a hand-written Lion and a trapezoid schedule that ends at exactly zero on the last step."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


@dataclass
class Config:
    steps: int = 150
    warmup: int = 10
    cooldown: int = 40
    batch: int = 32
    lr: float = 6e-4
    decay: float = 0.1
    seed: int = 17


class Lion(Optimizer):
    """Chen et al. 2023: the sign of an interpolated momentum, decoupled decay."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "exp_avg" not in state:
                    state["exp_avg"] = torch.zeros_like(p)
                avg = state["exp_avg"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_((avg * beta1 + p.grad * (1 - beta1)).sign(), alpha=-group["lr"])
                avg.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def sketches(n, seed):
    g = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 4, (n,), generator=g)
    x = 0.5 * torch.randn(n, 1, 12, 12, generator=g)
    for i, k in enumerate(kind.tolist()):
        at = int(torch.randint(2, 10, (1,), generator=g))
        if k == 0:
            x[i, 0, at] += 1.5
        elif k == 1:
            x[i, 0, :, at] += 1.5
        elif k == 2:
            x[i, 0] += 1.5 * torch.eye(12)
        else:
            x[i, 0] += 1.5 * torch.eye(12).flip(0)
    return (x - x.mean()) / x.std(), kind


class Sketcher(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.patch = nn.Conv2d(1, width, 3, stride=3)
        self.pos = nn.Parameter(torch.randn(16, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        return self.head(self.encoder(x).mean(1))


def trapezoid(cfg):
    def factor(step):
        if step < cfg.warmup:
            return (step + 1) / cfg.warmup
        return min(1.0, (cfg.steps - step) / cfg.cooldown)

    return factor


def main():
    cfg = Config()
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    x, y = sketches(1200, seed=1)
    val_x, val_y = sketches(200, seed=2)
    model = Sketcher()
    matrices = [p for n, p in model.named_parameters() if p.ndim > 1 and n != "pos"]
    vectors = [p for n, p in model.named_parameters() if p.ndim <= 1 or n == "pos"]
    optimizer = Lion([{"params": matrices, "weight_decay": cfg.decay}, {"params": vectors}], lr=cfg.lr)
    scheduler = LambdaLR(optimizer, trapezoid(cfg))
    loss_fn = nn.CrossEntropyLoss()
    for step in range(cfg.steps):
        model.train()
        idx = torch.randint(0, len(x), (cfg.batch,))
        loss = loss_fn(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 30 == 29:
            model.eval()
            with torch.no_grad():
                acc = (model(val_x).argmax(1) == val_y).float().mean()
            print(f"step {step + 1} loss {loss.item():.4f} val acc {acc:.3f} lr {scheduler.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    main()
