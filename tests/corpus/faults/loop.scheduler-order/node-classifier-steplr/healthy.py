"""Semi-supervised node classification with a two-layer graph convolution, full batch."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def planted_graph(n=300, classes=4, p_in=0.08, p_out=0.008, seed=10):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, n)
    same = label[:, None] == label[None]
    upper = np.triu(rng.random((n, n)) < np.where(same, p_in, p_out), 1)
    adj = torch.tensor((upper | upper.T).astype(np.float32)) + torch.eye(n)
    d = adj.sum(1).rsqrt()
    feats = rng.normal(size=(n, 16)) + 0.8 * np.random.default_rng(11).normal(size=(classes, 16))[label]
    feats = (feats - feats.mean(0)) / feats.std(0)
    return d[:, None] * adj * d[None], torch.tensor(feats, dtype=torch.float32), torch.tensor(label)


class GraphConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout)

    def forward(self, a_hat, x):
        return a_hat @ self.lin(x)


class GCN(nn.Module):
    def __init__(self, cin=16, hidden=24, classes=4, dropout=0.3):
        super().__init__()
        self.conv1 = GraphConv(cin, hidden)
        self.conv2 = GraphConv(hidden, classes)
        self.dropout = dropout

    def forward(self, a_hat, x):
        h = F.relu(self.conv1(a_hat, x))
        h = F.dropout(h, self.dropout, self.training)
        return self.conv2(a_hat, h)


def main():
    torch.manual_seed(10)
    a_hat, x, label = planted_graph()
    order = torch.randperm(len(label))
    train_idx, test_idx = order[:150], order[150:]
    model = GCN()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=40, gamma=0.5)

    for epoch in range(120):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(a_hat, x)[train_idx], label[train_idx])
        loss.backward()
        optimizer.step()
        scheduler.step()
        if epoch % 20 == 19:
            model.eval()
            with torch.no_grad():
                acc = (model(a_hat, x)[test_idx].argmax(1) == label[test_idx]).float().mean()
            print(f"{epoch + 1:3d} loss {loss.item():.4f} test {acc:.3f}")


if __name__ == "__main__":
    main()
