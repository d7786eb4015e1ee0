"""Node classification on many small random graphs with dense-adjacency graph attention."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(31)

NODES, FEATS, CLASSES = 14, 10, 4


def make_graphs(n):
    label = torch.randint(0, CLASSES, (n, NODES))
    same = label[:, :, None] == label[:, None, :]
    p = torch.where(same, 0.55, 0.08)
    upper = (torch.rand(n, NODES, NODES) < p).triu(1)
    adj = upper | upper.transpose(1, 2) | torch.eye(NODES, dtype=torch.bool)
    centres = torch.randn(CLASSES, FEATS, generator=torch.Generator().manual_seed(1))
    x = 0.5 * centres[label] + torch.randn(n, NODES, FEATS)
    return x, adj, label


class GraphAttention(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.lin = nn.Linear(fan_in, fan_out, bias=False)
        self.src = nn.Linear(fan_out, 1)
        self.dst = nn.Linear(fan_out, 1, bias=False)

    def forward(self, x, adj):
        h = self.lin(x)
        logits = F.leaky_relu(self.src(h) + self.dst(h).transpose(1, 2), 0.2)
        logits = logits.masked_fill(~adj, float("-inf"))
        weight = torch.softmax(logits, dim=2)
        return torch.bmm(weight, h)


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = GraphAttention(FEATS, 32)
        self.two = GraphAttention(32, 32)
        self.out = nn.Linear(32, CLASSES)

    def forward(self, x, adj):
        h = F.elu(self.one(x, adj))
        h = F.elu(h + self.two(h, adj))
        return self.out(h)


x, adj, label = make_graphs(320)
xv, adjv, labelv = make_graphs(64)
net = GAT()
optim = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(6):
    net.train()
    perm = torch.randperm(len(x))
    seen = 0.0
    for part in perm.split(20):
        optim.zero_grad()
        loss = F.cross_entropy(net(x[part], adj[part]).reshape(-1, CLASSES), label[part].reshape(-1))
        loss.backward()
        optim.step()
        seen += loss.item() * len(part)
    net.eval()
    with torch.no_grad():
        acc = (net(xv, adjv).argmax(-1) == labelv).float().mean().item()
    print(f"{epoch} loss {seen / len(x):.3f} acc {acc:.3f}")
