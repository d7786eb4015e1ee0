"""Self-supervised stage, then a supervised stage that starts from the saved encoder with an optimizer of its own."""

import random
from collections import deque
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

CHANNELS, LENGTH = 4, 24


def beats(count, gen):
    rhythm = torch.randint(0, 3, (count,), generator=gen)
    t = torch.arange(LENGTH).float()
    speed = (0.35 + 0.3 * rhythm.float())[:, None, None]
    phase = torch.rand(count, CHANNELS, 1, generator=gen) * 6.28
    return torch.sin(t * speed + phase) + 0.3 * torch.randn(count, CHANNELS, LENGTH, generator=gen), rhythm


def encoder():
    return nn.Sequential(nn.Conv1d(CHANNELS, 24, 5, padding=2), nn.GELU(), nn.Conv1d(24, 24, 5, padding=2), nn.GELU())


def warm(optimizer, steps):
    return LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / steps))


def pretrain(path, gen):
    body, rebuild = encoder(), nn.Conv1d(24, CHANNELS, 1)
    optimizer = torch.optim.Adam([*body.parameters(), *rebuild.parameters()], lr=3e-3)
    schedule = warm(optimizer, 8)
    signal, _ = beats(960, gen)
    recent = deque(maxlen=10)
    for step, rows in enumerate(torch.randperm(960).split(20)):
        clean = signal[rows]
        hidden = (torch.rand(len(rows), 1, LENGTH) < 0.25).float()
        loss = ((rebuild(body(clean * (1 - hidden))) - clean).square() * hidden).sum() / (hidden.sum() * CHANNELS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        recent.append(loss.detach())
        if step % 12 == 11:
            print(f"pretrain {step}: {torch.stack(list(recent)).mean():.4f}")
    torch.save(body.state_dict(), path)


class RhythmModel(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.body(x).square().mean(-1))


def finetune(path, gen):
    body = encoder()
    body.load_state_dict(torch.load(path, weights_only=True))
    model = RhythmModel(body)
    optimizer = torch.optim.Adam([{"params": model.body.parameters(), "lr": 1e-3}, {"params": model.head.parameters(), "lr": 1e-2}])
    schedule = warm(optimizer, 6)
    x, y = beats(480, gen)
    held_x, held_y = beats(120, gen)
    for epoch in range(3):
        model.train()
        for rows in torch.randperm(480).split(16):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(held_x).argmax(-1) == held_y).float().mean().item()
        print(f"finetune {epoch}: loss {loss.item():.4f} held-out accuracy {accuracy:.3f}")


def main():
    random.seed(52)
    np.random.seed(52)
    torch.manual_seed(52)
    gen = torch.Generator().manual_seed(52)
    path = Path("encoder.pt")
    pretrain(path, gen)
    finetune(path, gen)


if __name__ == "__main__":
    main()
