import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def citation_graph(n=400, classes=5, features=40, seed=0):
    """Papers cite mostly papers of their own field; words hint at the field."""
    rng = np.random.default_rng(seed)
    field = rng.integers(0, classes, n)
    same = field[:, None] == field[None, :]
    prob = np.where(same, 0.035, 0.006)
    adj = np.triu(rng.random((n, n)) < prob, 1)
    adj = adj | adj.T
    topic = rng.normal(0, 1, (classes, features))
    words = 0.45 * topic[field] + rng.normal(0, 1, (n, features))
    a_hat = adj + np.eye(n)
    inv = 1 / np.sqrt(a_hat.sum(1))
    a_hat = a_hat * inv[:, None] * inv[None, :]
    order = rng.permutation(n)
    return (
        torch.tensor(words, dtype=torch.float32),
        torch.tensor(a_hat, dtype=torch.float32),
        torch.tensor(field),
        torch.from_numpy(order[:200]),
        torch.from_numpy(order[200:280]),
        torch.from_numpy(order[280:]),
    )


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x, adj):
        return adj @ self.linear(x) + self.bias


class GCN(nn.Module):
    def __init__(self, inputs, hidden, classes, dropout=0.5):
        super().__init__()
        self.conv1 = GraphConv(inputs, hidden)
        self.bn = nn.BatchNorm1d(hidden)
        self.conv2 = GraphConv(hidden, classes)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.dropout(x, self.dropout, training=self.training)
        x = F.relu(self.bn(self.conv1(x, adj)))
        x = F.dropout(x, self.dropout, training=self.training)
        return self.conv2(x, adj)


torch.manual_seed(12)
np.random.seed(12)
x, adj, y, train_idx, val_idx, test_idx = citation_graph()
model = GCN(x.size(1), 32, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def train():
    optimizer.zero_grad()
    out = model(x, adj)
    loss = F.cross_entropy(out[train_idx], y[train_idx])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test():
    model.eval()
    pred = model(x, adj).argmax(dim=1)
    return [(pred[idx] == y[idx]).float().mean().item() for idx in (train_idx, val_idx, test_idx)]


best_val = final_test = 0.0
for epoch in range(1, 81):
    loss = train()
    train_acc, val_acc, test_acc = test()
    if val_acc > best_val:
        best_val, final_test = val_acc, test_acc
    if epoch % 10 == 0:
        print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Train: {train_acc:.3f}, Val: {val_acc:.3f}")
print(f"Test accuracy at the best validation epoch: {final_test:.3f}")
