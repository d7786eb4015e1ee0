"""Semi-supervised topics on a synthetic citation graph (two-layer graph convolution, full batch)."""
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class CitationGraph:
    """The layout follows the .mat export: `topic` is the column that the librarians filled in."""

    def __init__(self, papers=420, topics=6, words=90, seed=0):
        rng = np.random.default_rng(seed)
        self.topic = rng.integers(1, topics + 1, size=papers)
        theme = rng.random((topics + 1, words)) < 0.12
        flip = rng.random((papers, words)) < 0.06
        self.words = (theme[self.topic] ^ flip).astype(np.float32)
        same = self.topic[:, None] == self.topic[None, :]
        cites = rng.random((papers, papers)) < np.where(same, 0.03, 0.002)
        self.adjacency = np.triu(cites, 1)
        self.adjacency = (self.adjacency | self.adjacency.T).astype(np.float32)
        self.fold = rng.choice(3, p=[0.5, 0.2, 0.3], size=papers)

    def tensors(self):
        a = torch.from_numpy(self.adjacency) + torch.eye(len(self.topic))
        d = a.sum(1).rsqrt()
        bag = torch.from_numpy(self.words)
        bag = (bag - bag.mean(0)) / (bag.std(0) + 1e-5)
        labels = torch.from_numpy(self.topic).long() - 1
        return bag, d[:, None] * a * d[None, :], labels


class GraphConvolution(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(fan_in, fan_out))
        self.bias = nn.Parameter(torch.zeros(fan_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, h, a_hat):
        return a_hat @ (h @ self.weight) + self.bias


class TopicGCN(nn.Module):
    def __init__(self, words, hidden, topics, p):
        super().__init__()
        self.first = GraphConvolution(words, hidden)
        self.second = GraphConvolution(hidden, topics)
        self.p = p

    def forward(self, bag, a_hat):
        h = F.relu(self.first(bag, a_hat))
        h = F.dropout(h, self.p, self.training)
        return self.second(h, a_hat)


def main(seed=29, steps=70):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    graph = CitationGraph(seed=seed)
    bag, a_hat, labels = graph.tensors()
    fold = torch.from_numpy(graph.fold)
    num_topics = int(labels.max()) + 1
    model = TopicGCN(bag.shape[1], 32, num_topics, p=0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    best = 0.0
    for step in range(steps):
        model.train()
        optimizer.zero_grad()
        out = model(bag, a_hat)
        loss = F.cross_entropy(out[fold == 0], labels[fold == 0])
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                hit = (model(bag, a_hat).argmax(1) == labels).float()
            best = max(best, hit[fold == 1].mean().item())
            print(f"step {step + 1:3d} loss {loss.item():.4f} dev {hit[fold == 1].mean():.3f}")
    print(f"best dev {best:.3f}, test {hit[fold == 2].mean():.3f}, classes {num_topics}")


if __name__ == "__main__":
    main()
