"""Yield of a field from soil and weather: a regression with hand-written minibatches and a held-out year."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--rows", type=int, default=1600)
parser.add_argument("--batch", type=int, default=64)
args = parser.parse_args()

rng = np.random.RandomState(77)
torch.manual_seed(77)


def read_fields(count):
    day = rng.permutation(count)
    soil = rng.randn(count, 5).astype("float32")
    weather = rng.randn(count, 3).astype("float32")
    tonnes = 0.9 * soil[:, 0] - 0.6 * soil[:, 1] * weather[:, 0] + np.tanh(weather[:, 1]) + 0.1 * rng.randn(count)
    return day, np.hstack([soil, weather]), tonnes.astype("float32")


day, inputs, tonnes = read_fields(args.rows)
by_day = np.argsort(day)
inputs = inputs[by_day]
cut = int(0.8 * args.rows)
train_x, train_y = torch.tensor(inputs[:cut]), torch.tensor(tonnes[:cut])
later_x, later_y = torch.tensor(inputs[cut:]), torch.tensor(tonnes[cut:])

hidden = 64
w1 = torch.nn.Parameter(torch.randn(8, hidden) * (2 / 8) ** 0.5)
b1 = torch.nn.Parameter(torch.zeros(hidden))
w2 = torch.nn.Parameter(torch.randn(hidden, hidden) * (2 / hidden) ** 0.5)
b2 = torch.nn.Parameter(torch.zeros(hidden))
w3 = torch.nn.Parameter(torch.randn(hidden, 1) * hidden**-0.5)
b3 = torch.nn.Parameter(torch.zeros(1))
weights = [w1, b1, w2, b2, w3, b3]
optimizer = torch.optim.Adam(weights, lr=3e-3)


def predict(x):
    return (F.relu(F.relu(x @ w1 + b1) @ w2 + b2) @ w3 + b3).squeeze(-1)


for epoch in range(args.epochs):
    order = torch.randperm(cut)
    losses = []
    for i in range(0, cut, args.batch):
        pick = order[i : i + args.batch]
        loss = F.mse_loss(predict(train_x[pick]), train_y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        guess = predict(later_x)
        r2 = 1 - ((guess - later_y) ** 2).sum() / ((later_y - later_y.mean()) ** 2).sum()
    print(f"epoch {epoch} mse {np.mean(losses):.4f} held-out R2 {r2.item():.3f}")
