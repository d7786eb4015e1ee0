"""Crop classification from band statistics; cross-entropy written out, training as a class with callbacks."""

import random

import numpy as np
import torch
from torch import nn


class CropNet(nn.Module):
    def __init__(self, bands, crops):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(bands, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.top = nn.Linear(48, crops)

    def forward(self, x):
        return self.top(self.body(x)).softmax(dim=-1)


def crop_loss(scores, labels):
    chosen = scores.gather(1, labels.view(-1, 1)).squeeze(1)
    return (torch.logsumexp(scores, dim=1) - chosen).mean()


class History:
    def __init__(self):
        self.rows = []

    def on_step(self, step, value):
        self.rows.append(value)

    def on_epoch(self, epoch, accuracy):
        print(f"epoch {epoch} mean loss {np.mean(self.rows[-20:]):.3f} accuracy {accuracy:.3f}")


class Runner:
    def __init__(self, net, opt, callbacks):
        self.net, self.opt, self.callbacks, self.count = net, opt, callbacks, 0

    def emit(self, name, *args):
        for cb in self.callbacks:
            getattr(cb, name)(*args)

    def train_epoch(self, x, y):
        self.net.train()
        for idx in torch.randperm(len(x)).split(40):
            loss = crop_loss(self.net(x[idx]), y[idx])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.count += 1
            self.emit("on_step", self.count, loss.item())

    @torch.no_grad()
    def accuracy(self, x, y):
        self.net.eval()
        return (self.net(x).argmax(1) == y).float().mean().item()


def fields(n, rng, centres):
    y = rng.integers(0, len(centres), n)
    x = centres[y] + rng.normal(0, 0.6, (n, centres.shape[1]))
    return x, y


if __name__ == "__main__":
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    centres = rng.normal(0, 1, (6, 12))
    x, y = fields(1000, rng, centres)
    mean, std = x[:800].mean(0), x[:800].std(0)
    x = torch.tensor((x - mean) / std, dtype=torch.float32)
    y = torch.tensor(y)
    net = CropNet(12, 6)
    runner = Runner(net, torch.optim.Adam(net.parameters(), lr=5e-3), [History()])
    for epoch in range(4):
        runner.train_epoch(x[:800], y[:800])
        runner.emit("on_epoch", epoch, runner.accuracy(x[800:], y[800:]))
