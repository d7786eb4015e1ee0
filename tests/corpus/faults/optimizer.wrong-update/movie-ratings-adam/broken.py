"""Matrix factorisation with side features for movie ratings, optimised by our own Adam (no fused kernels needed)."""

import math
import random

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset


class Adam(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})
        self.t = 0

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.t += 1
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                m, v = state["m"], state["v"]
                m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                m_hat = m / (1 - beta1**self.t)
                v_hat = v / (1 - beta2**self.t)
                p.addcdiv_(m_hat, v_hat.sqrt() + group["eps"], value=-group["lr"])
        return loss


class RatingModel(nn.Module):
    def __init__(self, users, movies, side, dim=12):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.movie = nn.Embedding(movies, dim)
        self.user_bias = nn.Embedding(users, 1)
        self.movie_bias = nn.Embedding(movies, 1)
        self.side = nn.Sequential(nn.Linear(side + 2 * dim, 32), nn.ReLU(), nn.Linear(32, 1))
        for emb in (self.user, self.movie):
            nn.init.normal_(emb.weight, std=0.1)
        for emb in (self.user_bias, self.movie_bias):
            nn.init.zeros_(emb.weight)

    def forward(self, u, m, s):
        eu, em = self.user(u), self.movie(m)
        dot = (eu * em).sum(-1) / math.sqrt(eu.size(-1))
        deep = self.side(torch.cat([eu, em, s], dim=-1)).squeeze(-1)
        return dot + deep + self.user_bias(u).squeeze(-1) + self.movie_bias(m).squeeze(-1)


def ratings(n=3200, users=60, movies=40, side=4, seed=6):
    g = torch.Generator().manual_seed(seed)
    u = torch.randint(0, users, (n,), generator=g)
    m = torch.randint(0, movies, (n,), generator=g)
    s = torch.randn(n, side, generator=g)
    taste, style = torch.randn(users, generator=g), torch.randn(movies, generator=g)
    y = taste[u] + style[m] + s[:, 0] * 0.8 - s[:, 1] * 0.5 + 0.2 * torch.randn(n, generator=g)
    return u, m, s, y


def main():
    random.seed(6)
    np.random.seed(6)
    torch.manual_seed(6)
    u, m, s, y = ratings()
    cut = 2560
    y = (y - y[:cut].mean()) / y[:cut].std()
    train = DataLoader(TensorDataset(u[:cut], m[:cut], s[:cut], y[:cut]), batch_size=64, shuffle=True)
    test = TensorDataset(u[cut:], m[cut:], s[cut:], y[cut:])
    model = RatingModel(60, 40, 4)
    optimizer = Adam(model.parameters(), lr=1e-2)
    mse = nn.MSELoss()
    for epoch in range(4):
        model.train()
        total = 0.0
        for users, movies, side, target in train:
            optimizer.zero_grad()
            loss = mse(model(users, movies, side), target)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(target)
        model.eval()
        with torch.no_grad():
            users, movies, side, target = test.tensors
            rmse = mse(model(users, movies, side), target).sqrt().item()
        print(f"epoch {epoch + 1}: train mse {total / cut:.4f}, test rmse {rmse:.4f}")


if __name__ == "__main__":
    main()
