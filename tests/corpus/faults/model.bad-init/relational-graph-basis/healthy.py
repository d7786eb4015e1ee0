"""Node classification on a small typed graph (suppliers, parts, plants) with relation-specific weights."""

import argparse
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=240)
    parser.add_argument("--relations", type=int, default=3)
    parser.add_argument("--classes", type=int, default=4)
    parser.add_argument("--features", type=int, default=24)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=11)
    return parser.parse_args()


def synthesize(args):
    rng = np.random.default_rng(args.seed)
    label = rng.integers(0, args.classes, args.nodes)
    same = label[:, None] == label[None, :]
    adjacency = np.zeros((args.relations, args.nodes, args.nodes), dtype=np.float32)
    for r in range(args.relations):
        p = np.where(same, 0.06, 0.01)
        edges = rng.random((args.nodes, args.nodes)) < p
        np.fill_diagonal(edges, False)
        degree = edges.sum(1, keepdims=True).clip(1)
        adjacency[r] = edges / degree
    centres = rng.normal(size=(args.classes, args.features))
    features = 0.6 * centres[label] + rng.normal(size=(args.nodes, args.features))
    features = (features - features.mean(0)) / features.std(0)
    return (
        torch.tensor(adjacency),
        torch.tensor(features, dtype=torch.float32),
        torch.tensor(label, dtype=torch.long),
    )


class RelationalLayer(nn.Module):
    def __init__(self, relations, d_in, d_out):
        super().__init__()
        self.per_relation = nn.Parameter(torch.randn(relations, d_in, d_out) * d_in**-0.5)
        self.own = nn.Parameter(torch.randn(d_in, d_out) * d_in**-0.5)
        self.bias = nn.Parameter(torch.zeros(d_out))

    def forward(self, adjacency, h):
        messages = torch.einsum("rij,jd,rde->ie", adjacency, h, self.per_relation) / adjacency.shape[0]
        return messages + h @ self.own + self.bias


class RelationalNet(nn.Module):
    def __init__(self, args):
        super().__init__()
        widths = [args.features] + [args.hidden] * (args.layers - 1) + [args.classes]
        self.layers = nn.ModuleList(RelationalLayer(args.relations, a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, adjacency, h):
        for layer in self.layers[:-1]:
            h = F.relu(layer(adjacency, h))
        return self.layers[-1](adjacency, h)


def main():
    args = parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    adjacency, features, label = synthesize(args)
    order = torch.randperm(args.nodes)
    train_idx, valid_idx = order[:180], order[180:]

    net = RelationalNet(args)
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        net.train()
        logits = net(adjacency, features)
        loss = F.cross_entropy(logits[train_idx], label[train_idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 10 == 0 or epoch == args.epochs - 1:
            net.eval()
            with torch.no_grad():
                guess = net(adjacency, features).argmax(-1)
            accuracy = (guess[valid_idx] == label[valid_idx]).float().mean().item()
            print(f"epoch {epoch:3d}  loss {loss.item():.4f}  valid acc {accuracy:.3f}")


if __name__ == "__main__":
    main()
