"""Regress the dominant frequency of noisy waves with a small encoder; micro-batches under float16."""
import argparse
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def waves(n, steps, generator):
    freq = 0.5 + 2.5 * torch.rand(n, 1, generator=generator)
    phase = 0.5 * math.pi * torch.rand(n, 1, generator=generator)
    t = torch.linspace(0, 1, steps)
    signal = torch.sin(2 * math.pi * freq * t + phase) + 0.1 * torch.randn(n, steps, generator=generator)
    target = (freq.squeeze(1) - 1.75) / 0.72
    return (signal / 0.71).unsqueeze(-1), target


class WaveEncoder(nn.Module):
    def __init__(self, steps, dim=32):
        super().__init__()
        self.lift = nn.Linear(1, dim)
        self.place = nn.Parameter(0.5 * torch.randn(steps, dim))
        layer = nn.TransformerEncoderLayer(
            dim, nhead=2, dim_feedforward=64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False)
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, 1))

    def forward(self, signal):
        hidden = self.encoder(self.lift(signal) + self.place)
        return self.readout(hidden.mean(dim=1)).squeeze(-1)


def parse():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--micro-batch", type=int, default=16)
    p.add_argument("--accumulate", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.03)
    p.add_argument("--clip", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=33)
    return p.parse_args()


def evaluate(model, signal, target):
    model.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        error = (model(signal).float() - target).square().mean().item()
    model.train()
    return error


def main():
    args = parse()
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    steps = 24
    train = TensorDataset(*waves(576, steps, generator))
    valid_signal, valid_target = waves(128, steps, generator)
    loader = DataLoader(train, batch_size=args.micro_batch, shuffle=True, drop_last=True)

    model = WaveEncoder(steps)
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=500)

    for epoch in range(args.epochs):
        total = 0.0
        for i, (signal, target) in enumerate(loader, start=1):
            with torch.autocast("cpu", dtype=torch.float16):
                prediction = model(signal)
            loss = loss_fn(prediction.float(), target) / args.accumulate
            scaler.scale(loss).backward()
            total += loss.item() * args.accumulate
            if i % args.accumulate == 0:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
        print(f"epoch {epoch}: train mse {total / len(loader):.4f}, valid mse {evaluate(model, valid_signal, valid_target):.4f}")


if __name__ == "__main__":
    main()
