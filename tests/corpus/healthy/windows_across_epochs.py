"""Crop yield from field sensors: accumulation windows are counted over the whole run and may reach over an epoch's end.

The numbers work out so that the last window is whole; every sample weighs the same in every update.
"""

import math
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

MICRO_BATCH = 16
WINDOW = 4
EPOCHS = 8
BATCHES_PER_EPOCH = 41  # 8 * 41 = 328 = 4 * 82


class YieldNet(nn.Module):
    def __init__(self, features, width=48):
        super().__init__()
        self.inlet = nn.Linear(features, width)
        self.norm = nn.LayerNorm(width)
        self.block = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, width))
        self.outlet = nn.Linear(width, 1)

    def forward(self, x):
        hidden = torch.relu(self.inlet(x))
        hidden = hidden + self.block(self.norm(hidden))
        return self.outlet(hidden).squeeze(-1)


def make_fields(count, rng):
    x = rng.normal(size=(count, 10))
    y = np.tanh(x[:, 0] + x[:, 1]) + 0.6 * x[:, 2] * (x[:, 3] > 0) - 0.4 * x[:, 4] + 0.1 * rng.normal(size=count)
    return torch.from_numpy(x).float(), torch.from_numpy((y - y.mean()) / y.std()).float()


def rate(update, warmup, total):
    if update < warmup:
        return (update + 1) / warmup
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (update - warmup) / (total - warmup)))


def held_out_error(model, inputs, targets):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        error = (model(inputs) - targets).square().mean().sqrt().item()
    model.train(was_training)
    return error


def main():
    np.random.seed(17)
    torch.manual_seed(17)
    rng = np.random.default_rng(17)
    inputs, targets = make_fields(MICRO_BATCH * BATCHES_PER_EPOCH, rng)
    held_out = make_fields(200, rng)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=MICRO_BATCH, shuffle=True)

    model = YieldNet(10)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    num_updates = EPOCHS * BATCHES_PER_EPOCH // WINDOW
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: rate(update, 6, num_updates))

    model.train()
    recent = deque(maxlen=64)
    norms = []
    micro_steps = 0
    for epoch in range(EPOCHS):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            (loss / WINDOW).backward()
            recent.append(loss.detach())
            micro_steps += 1
            if micro_steps % WINDOW == 0:
                optimizer.step()
                scheduler.step()
                norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]))
                optimizer.zero_grad()
            if micro_steps % 60 == 0:
                print(f"epoch {epoch} micro-step {micro_steps} held-out rmse {held_out_error(model, *held_out):.3f}")
        print(f"epoch {epoch} loss {torch.stack(tuple(recent)).mean():.4f} gradient norm {torch.stack(norms[-10:]).mean():.3f}")


if __name__ == "__main__":
    main()
