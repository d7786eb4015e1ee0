"""Band-gap class of a crystal from its set of atoms: SDPA blocks with a learned readout token."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ELEMENTS, NUM_ATOMS = 12, 10


class AtomAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.reshape(b, n, self.heads, -1).transpose(1, 2) for t in self.to_qkv(x).chunk(3, dim=-1))
        out = F.scaled_dot_product_attention(q, k, v, scale=1.0)
        return self.to_out(out.transpose(1, 2).reshape(b, n, d))


class CrystalNet(nn.Module):
    def __init__(self, dim=64, heads=4, depth=2, classes=3):
        super().__init__()
        self.species = nn.Embedding(ELEMENTS, dim)
        self.coords = nn.Sequential(nn.Linear(3, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.readout = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.attn = nn.ModuleList(AtomAttention(dim, heads) for _ in range(depth))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim)) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, species, xyz):
        x = self.species(species) + self.coords(xyz)
        x = torch.cat([self.readout.expand(len(x), -1, -1), x], dim=1)
        for attn, mlp, norm in zip(self.attn, self.mlp, self.norms):
            x = x + attn(norm(x))
            x = x + mlp(x)
        return self.head(x[:, 0])


def crystals(n, seed):
    rng = np.random.default_rng(seed)
    species = rng.integers(0, ELEMENTS, (n, NUM_ATOMS))
    xyz = rng.standard_normal((n, NUM_ATOMS, 3)).astype(np.float32)
    weight = np.linspace(-1, 1, ELEMENTS)
    score = weight[species].sum(1) + 0.3 * (xyz[..., 2] * (species < 4)).sum(1)
    return torch.from_numpy(species), torch.from_numpy(xyz), torch.from_numpy(np.digitize(score, [-0.9, 0.9]))


def main(args):
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    train, val = crystals(1200, 1), crystals(240, 2)
    net = CrystalNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        net.train()
        for idx in torch.randperm(len(train[0])).split(args.batch):
            species, xyz, gap = (t[idx] for t in train)
            loss = F.cross_entropy(net(species, xyz), gap)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            accuracy = (net(val[0], val[1]).argmax(1) == val[2]).float().mean().item()
        print(f"epoch {epoch:2d}  loss {loss.item():.4f}  val accuracy {accuracy:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
