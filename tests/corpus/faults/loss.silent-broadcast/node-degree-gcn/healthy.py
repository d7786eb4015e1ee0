"""Predict a value per node on small graphs with two graph convolutions."""

import torch
from torch import nn
from torch.optim import Adam

torch.manual_seed(37)
N = 12


def graphs(count):
    feats = torch.randn(count, N, 4)
    adj = (torch.rand(count, N, N) < 0.25).float().triu(1)
    adj = adj + adj.transpose(1, 2) + torch.eye(N)
    norm = adj / adj.sum(-1, keepdim=True)
    value = (norm @ feats[..., :1]).squeeze(-1) * 2 + feats[..., 1]
    return feats, norm, (value - value.mean()) / value.std()


class GCN(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.a = nn.Linear(8, width)
        self.b = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x, adj):
        h = torch.relu(self.a(torch.cat([x, adj @ x], -1)))
        h = torch.relu(self.b(torch.cat([h, adj @ h], -1)))
        return self.out(h)


feats, adj, value = graphs(400)
model = GCN()
opt = Adam(model.parameters(), lr=4e-3)
for epoch in range(5):
    model.train()
    for idx in torch.randperm(360).split(12):
        guess = model(feats[idx], adj[idx]).squeeze(-1)
        loss = ((guess - value[idx]) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        guess = model(feats[360:], adj[360:]).squeeze(-1)
        corr = torch.corrcoef(torch.stack([guess.reshape(-1), value[360:].reshape(-1)]))[0, 1]
    print(f"epoch {epoch}: loss {loss.item():.4f} correlation {corr:.3f}")
