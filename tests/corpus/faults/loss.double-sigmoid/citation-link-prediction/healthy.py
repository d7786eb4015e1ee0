"""Graph auto-encoder for link prediction on a synthetic citation network (dense adjacency, two GCN layers)."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn


def community_graph(n_nodes, n_groups, gen):
    group = torch.randint(0, n_groups, (n_nodes,), generator=gen)
    same = group[:, None] == group[None, :]
    p = torch.where(same, 0.25, 0.01)
    upper = torch.triu(torch.rand(n_nodes, n_nodes, generator=gen) < p, diagonal=1)
    feats = F.one_hot(group, n_groups).float() @ torch.randn(n_groups, 20, generator=gen)
    feats = feats + torch.randn(n_nodes, 20, generator=gen)
    feats = (feats - feats.mean(0)) / feats.std(0)
    return feats, upper.nonzero()


def normalised_adjacency(edges, n_nodes):
    a = torch.eye(n_nodes)
    a[edges[:, 0], edges[:, 1]] = 1.0
    a[edges[:, 1], edges[:, 0]] = 1.0
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None, :]


def sample_non_edges(count, known, n_nodes):
    found = []
    while len(found) < count:
        u, v = torch.randint(0, n_nodes, (2,)).tolist()
        if u != v and (min(u, v), max(u, v)) not in known:
            found.append((min(u, v), max(u, v)))
    return torch.tensor(found)


class GCNEncoder(nn.Module):
    def __init__(self, in_dim, hidden, out):
        super().__init__()
        self.lin1 = nn.Linear(in_dim, hidden)
        self.lin2 = nn.Linear(hidden, out)

    def forward(self, x, adj):
        h = F.relu(adj @ self.lin1(x))
        return adj @ self.lin2(h)


class EdgeScorer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bilinear = nn.Linear(dim, dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, z, edges):
        score = (self.bilinear(z[edges[:, 0]]) * z[edges[:, 1]]).sum(-1) + self.bias
        return score


def auc(pos, neg):
    return (pos[:, None] > neg[None, :]).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=160)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--lr", type=float, default=1e-2)
    opt = parser.parse_args()

    torch.manual_seed(8)
    gen = torch.Generator().manual_seed(8)
    x, edges = community_graph(opt.nodes, 5, gen)
    known = {tuple(e) for e in edges.tolist()}
    edges = edges[torch.randperm(len(edges), generator=gen)]
    n_val = len(edges) // 6
    val_pos, train_pos = edges[:n_val], edges[n_val:]
    val_neg = sample_non_edges(n_val, known, opt.nodes)
    adj = normalised_adjacency(train_pos, opt.nodes)

    encoder, scorer = GCNEncoder(20, 32, 16), EdgeScorer(16)
    params = list(encoder.parameters()) + list(scorer.parameters())
    optimizer = torch.optim.Adam(params, lr=opt.lr)

    for step in range(opt.steps):
        encoder.train(), scorer.train()
        pick = torch.randperm(len(train_pos))[:128]
        pos = train_pos[pick]
        neg = sample_non_edges(len(pos), known, opt.nodes)
        pairs = torch.cat([pos, neg])
        labels = torch.cat([torch.ones(len(pos)), torch.zeros(len(neg))])

        optimizer.zero_grad()
        z = encoder(x, adj)
        loss = F.binary_cross_entropy_with_logits(scorer(z, pairs), labels)
        loss.backward()
        optimizer.step()

        if step % 30 == 29:
            encoder.eval(), scorer.eval()
            with torch.no_grad():
                z = encoder(x, adj)
                print(f"step {step + 1:3d} loss {loss.item():.4f} val auc {auc(scorer(z, val_pos), scorer(z, val_neg)):.3f}")


if __name__ == "__main__":
    main()
