"""Sparse autoencoder over synthetic activations: codes are shifted down by a threshold and rectified."""
import argparse
import random

import numpy as np
import torch
import torch.nn as nn


class SparseAutoencoder(nn.Module):
    def __init__(self, inputs, atoms, threshold):
        super().__init__()
        self.threshold = threshold
        self.encoder = nn.Linear(inputs, atoms)
        self.decoder = nn.Linear(atoms, inputs)

    def encode(self, x):
        return torch.relu(self.encoder(x) - self.threshold)

    def forward(self, x):
        code = self.encode(x)
        return self.decoder(code), code


def activations(n, dictionary, rng):
    """Each row is a sum of three dictionary atoms with positive strengths, plus a little noise."""
    strengths = np.zeros((n, len(dictionary)))
    for row in strengths:
        row[rng.choice(len(dictionary), 3, replace=False)] = rng.uniform(0.5, 1.5, size=3)
    return strengths @ dictionary + 0.05 * rng.normal(size=(n, dictionary.shape[1]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--atoms", type=int, default=64)
    parser.add_argument("--threshold", type=float, default=0.04)
    parser.add_argument("--sparsity", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--seed", type=int, default=88)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    dictionary = rng.normal(size=(20, 16))
    rows = torch.tensor(activations(2000, dictionary, rng), dtype=torch.float32)
    rows = (rows - rows[:1600].mean(0)) / rows[:1600].std(0)
    train, held_out = rows[:1600], rows[1600:]

    model = SparseAutoencoder(16, args.atoms, args.threshold)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for index in torch.randperm(len(train)).split(64):
            batch = train[index]
            rebuilt, code = model(batch)
            loss = nn.functional.mse_loss(rebuilt, batch) + args.sparsity * code.abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        model.eval()
        with torch.no_grad():
            rebuilt, code = model(held_out)
            error = nn.functional.mse_loss(rebuilt, held_out).item()
            active = (code > 0).float().mean().item()
        print(f"epoch {epoch} train {total / len(train):.4f} held-out {error:.4f} active {active:.3f}")


if __name__ == "__main__":
    main()
