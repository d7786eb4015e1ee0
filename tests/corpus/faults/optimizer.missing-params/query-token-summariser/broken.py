"""Perceiver-style set summariser: learned query tokens read a set of sensor events."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CrossRead(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, queries, events):
        split = lambda t: t.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # noqa: E731
        k, v = self.to_kv(events).chunk(2, dim=-1)
        q, k, v = split(self.to_q(queries)), split(k), split(v)
        weights = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
        out = torch.einsum("bhqk,bhkd->bhqd", weights.softmax(-1), v)
        return self.to_out(out.transpose(1, 2).flatten(2))


class Summariser(nn.Module):
    def __init__(self, features=6, dim=32, queries=4, heads=4, classes=3):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(queries, dim))
        self.embed = nn.Sequential(nn.Linear(features, dim), nn.GELU(), nn.Linear(dim, dim))
        self.read = CrossRead(dim, heads)
        self.head = nn.Sequential(nn.LayerNorm(queries * dim), nn.Linear(queries * dim, classes))

    def forward(self, events):
        q = self.queries.expand(len(events), -1, -1)
        return self.head((q + self.read(q, self.embed(events))).flatten(1))


def events(n, rng):
    x = rng.normal(size=(n, 20, 6))
    score = np.stack([np.maximum(x[..., j], 0).mean(1) for j in range(3)], 1)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(score.argmax(1)))


def main():
    torch.manual_seed(51)
    rng = np.random.default_rng(51)
    train, held = events(1280, rng), events(256, rng)
    loader = DataLoader(train, batch_size=64, shuffle=True)
    model = Summariser()
    parameters = []
    for part in (model.embed, model.read, model.head):
        parameters.extend(part.parameters())
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    for epoch in range(5):
        model.train()
        losses = []
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            acc = (model(held.tensors[0]).argmax(1) == held.tensors[1]).float().mean().item()
        print(f"epoch {epoch} loss {np.mean(losses):.4f} held-out acc {acc:.3f}")


if __name__ == "__main__":
    main()
