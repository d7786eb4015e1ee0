import argparse

import numpy as np
import torch
import torch.nn.functional as F


def listings(rng, n):
    area = rng.normal(85, 30, n).clip(18, 260)
    year = rng.integers(1900, 2022, n)
    distance = rng.gamma(2.0, 2500.0, n)
    floor = rng.integers(0, 12, n)
    income = rng.lognormal(10.4, 0.4, n)
    rent = 9.5 * area - 0.03 * distance + 2.1 * (year - 1960) + 0.006 * income + 12 * floor + rng.normal(0, 60, n)
    return np.stack([area, year, distance, floor, income], 1), rent


class Regressor(torch.nn.Module):
    def __init__(self, num_features, width):
        super().__init__()
        self.l1 = torch.nn.Linear(num_features, width)
        self.l2 = torch.nn.Linear(width, width)
        self.l3 = torch.nn.Linear(width, 1)

    def forward(self, x):
        x = torch.tanh(self.l1(x))
        x = torch.tanh(self.l2(x))
        return self.l3(x)[:, 0]


def run(args):
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    features, rent = listings(rng, 3000)
    target = (rent - rent.mean()) / rent.std()
    train, test = slice(0, 2500), slice(2500, 3000)
    mean, std = features[train].mean(0), features[train].std(0)
    features = (features - mean) / std
    X = torch.as_tensor(features, dtype=torch.float32)
    Y = torch.as_tensor(target, dtype=torch.float32)
    net = Regressor(X.shape[1], args.width)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    for step in range(args.steps):
        pick = torch.randint(0, 2500, (args.batch,))
        prediction = net(X[pick])
        loss = F.mse_loss(prediction, Y[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            with torch.no_grad():
                held_out = F.mse_loss(net(X[test]), Y[test])
            print(f"{step:4d} train {loss.item():.4f} test {held_out.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=8)
    run(parser.parse_args())
