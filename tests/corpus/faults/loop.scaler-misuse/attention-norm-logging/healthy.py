"""Half-precision training of an attention regressor; the gradient norm goes to the log every 15 updates."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, get_total_norm


@dataclass(frozen=True)
class Settings:
    items: int = 8
    features: int = 6
    width: int = 32
    heads: int = 4
    batch: int = 32
    updates: int = 75
    log_every: int = 15
    lr: float = 3e-3
    max_norm: float = 1.0
    seed: int = 270


class BasketValue(nn.Module):
    """Predicts a basket's value from its items; the price of an item depends on what lies beside it."""

    def __init__(self, s):
        super().__init__()
        self.lift = nn.Linear(s.features, s.width)
        self.attend = nn.MultiheadAttention(s.width, s.heads, batch_first=True)
        self.norm = nn.LayerNorm(s.width)
        self.value = nn.Sequential(nn.Linear(s.width, s.width), nn.GELU(), nn.Linear(s.width, 1))

    def forward(self, basket):
        h = self.lift(basket)
        mixed, _ = self.attend(h, h, h, need_weights=False)
        return self.value(self.norm(h + mixed)).mean(dim=1).squeeze(-1)


def draw(s, n, generator):
    basket = torch.randn(n, s.items, s.features, generator=generator)
    total = basket[..., 0].mean(1) * 2 + torch.tanh(basket[..., 1].mean(1) * basket[..., 2].mean(1) * 4)
    return basket, total / 0.8


def grad_norm(model, optimizer, scaler):
    scaler.unscale_(optimizer)
    return get_total_norm([p.grad for p in model.parameters()]).item()


def fit(s):
    torch.manual_seed(s.seed)
    stream = torch.Generator().manual_seed(s.seed + 1)
    model = BasketValue(s)
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.lr, weight_decay=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for update in range(1, s.updates + 1):
        model.train()
        basket, total = draw(s, s.batch, stream)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(basket).float(), total)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        if update % s.log_every == 0:
            norm = grad_norm(model, optimizer, scaler)
            print(f"update {update} loss {loss.item():.4f} gradient norm {norm:.3f} scale {scaler.get_scale():.0f}")
        else:
            scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), s.max_norm)
        scaler.step(optimizer)
        scaler.update()

    model.eval()
    basket, total = draw(s, 256, stream)
    with torch.no_grad():
        print(f"test mse {nn.functional.mse_loss(model(basket), total).item():.4f}")


if __name__ == "__main__":
    fit(Settings())
