"""Multi-modal trajectory forecasting with a mixture density head."""

import math
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 13
HISTORY, HORIZON, MODES = 10, 24, 3


def simulate(n, rng):
    """Cars drive on, turn left or turn right after the observed second."""
    speed = rng.gamma(6.0, 1 / 6.0, size=(n, 1))
    heading = rng.normal(0, 0.3, size=(n, 1))
    turn = rng.choice([-1.0, 0.0, 1.0], size=(n, 1)) * rng.uniform(0.02, 0.06, size=(n, 1))
    t = np.arange(-HISTORY + 1, HORIZON + 1)[None, :]
    angle = heading + np.where(t > 0, turn * t, 0.0)
    steps = np.stack([np.cos(angle), np.sin(angle)], -1) * speed[..., None] * 0.12
    path = steps.cumsum(1)
    path -= path[:, HISTORY - 1 : HISTORY]
    path += rng.normal(0, 0.01, size=path.shape)
    return path[:, :HISTORY].astype(np.float32), path[:, HISTORY:].astype(np.float32)


class MixtureDensityForecaster(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.encoder = nn.GRU(2, hidden, batch_first=True)
        self.trunk = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())
        self.weight = nn.Linear(hidden, MODES)
        self.mean = nn.Linear(hidden, MODES * HORIZON * 2)
        self.log_scale = nn.Linear(hidden, MODES * HORIZON * 2)

    def forward(self, past):
        _, h = self.encoder(past)
        h = self.trunk(h[-1])
        shape = (-1, MODES, HORIZON * 2)
        return self.weight(h), self.mean(h).view(shape), self.log_scale(h).view(shape).clamp(-3.0, 2.0)


def mixture_nll(weight_logits, mean, log_scale, target):
    z = (target.flatten(1).unsqueeze(1) - mean) / log_scale.exp()
    log_prob = (-0.5 * z**2 - log_scale - 0.5 * math.log(2 * math.pi)).sum(-1)
    likelihood = torch.logsumexp(weight_logits.log_softmax(-1) + log_prob, dim=-1)
    return -likelihood.mean() / target[0].numel()


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    losses = []
    with torch.set_grad_enabled(optimizer is not None):
        for past, future in loader:
            loss = mixture_nll(*model(past), future)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
            losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    past, future = simulate(1600, np.random.default_rng(SEED))
    centre, scale = past[:1280].mean((0, 1)), past[:1280].std((0, 1))
    past = torch.from_numpy((past - centre) / scale)
    future = torch.from_numpy(future / future[:1280].std((0, 1)))
    train = DataLoader(TensorDataset(past[:1280], future[:1280]), batch_size=64, shuffle=True)
    valid = DataLoader(TensorDataset(past[1280:], future[1280:]), batch_size=160)
    model = MixtureDensityForecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        fit = run_epoch(model, train, optimizer)
        print(f"epoch {epoch}: train nll {fit:.4f}  valid nll {run_epoch(model, valid):.4f}")


if __name__ == "__main__":
    main()
