"""Predicts the impulse response of a room (sound pressure, 1024 samples) from its geometry. Mixed precision."""
import argparse
import random
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

PASCAL = 0.05  # sound pressure of a unit response


def simulate_rooms(n, samples, rng):
    """Length, width, height, absorption, source and receiver position -> a sum of decaying room modes."""
    geometry = rng.uniform(-1, 1, (n, 8))
    t = np.linspace(0, 1, samples)
    modes = rng.uniform(20, 200, 12)
    mixing = rng.normal(0, 1, (8, 12)) / np.sqrt(8)
    gains = np.tanh(geometry @ mixing) * (1 + geometry[:, 3:4] * 0.5)
    response = gains @ (np.sin(2 * np.pi * modes[:, None] * t) * np.exp(-4 * t))
    return torch.tensor(geometry / geometry.std(0), dtype=torch.float32), torch.tensor(PASCAL * response, dtype=torch.float32)


class ResponseNet(nn.Module):
    def __init__(self, samples, hidden=64):
        super().__init__()
        self.inp = nn.Linear(8, hidden)
        self.hidden = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.out = nn.Linear(hidden, samples)

    def forward(self, geometry):
        x = F.gelu(self.inp(geometry))
        for norm, layer in zip(self.norms, self.hidden):
            x = x + F.gelu(layer(norm(x)))
        return PASCAL * self.out(x)


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--precision", choices=["fp32", "fp16", "bf16"], default="fp16")
    p.add_argument("--samples", type=int, default=1024)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


def main():
    args = parse_args()
    random.seed(5)
    np.random.seed(5)
    torch.manual_seed(5)
    geometry, response = simulate_rooms(1024, args.samples, np.random.default_rng(5))
    train = DataLoader(TensorDataset(geometry[:896], response[:896]), args.batch, shuffle=True)
    valid = DataLoader(TensorDataset(geometry[896:], response[896:]), args.batch)
    model = ResponseNet(args.samples)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    dtype = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}[args.precision]
    amp = nullcontext if dtype is None else (lambda: torch.autocast("cpu", dtype=dtype))
    scaler = torch.amp.GradScaler("cpu", enabled=args.precision == "bf16")

    for epoch in range(args.epochs):
        model.train()
        losses = []
        for room, target in train:
            optimizer.zero_grad(set_to_none=True)
            with amp():
                predicted = model(room)
            loss = F.mse_loss(predicted.float(), target)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad(), amp():
            error = np.mean([F.mse_loss(model(room).float(), target).item() for room, target in valid])
        print(f"epoch {epoch}: train mse {np.mean(losses):.3e}, valid mse {error:.3e}, target power {response.pow(2).mean():.3e}")


if __name__ == "__main__":
    main()
