"""Semi-supervised node classification with a two-layer graph convolutional network on a synthetic citation graph."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 3
np.random.seed(SEED)
torch.manual_seed(SEED)


class Graph:
    def __init__(self, num_nodes=600, num_classes=6, num_feats=48, p_in=0.04, p_out=0.003, seed=SEED):
        rng = np.random.default_rng(seed)
        self.y = torch.from_numpy(rng.integers(0, num_classes, num_nodes))
        same = self.y[:, None] == self.y[None, :]
        prob = np.where(same.numpy(), p_in, p_out)
        upper = np.triu(rng.random((num_nodes, num_nodes)) < prob, 1)
        adj = torch.from_numpy((upper | upper.T).astype(np.float32)) + torch.eye(num_nodes)
        deg = adj.sum(1)
        self.adj = adj / torch.sqrt(deg[:, None] * deg[None, :])
        centres = rng.standard_normal((num_classes, num_feats))
        feats = centres[self.y.numpy()] * 0.5 + rng.standard_normal((num_nodes, num_feats))
        feats = (feats - feats.mean(0)) / feats.std(0)
        self.x = torch.from_numpy(feats.astype(np.float32))
        order = torch.from_numpy(rng.permutation(num_nodes))
        self.train_mask = torch.zeros(num_nodes, dtype=torch.bool)
        self.val_mask = torch.zeros(num_nodes, dtype=torch.bool)
        self.train_mask[order[:240]] = True
        self.val_mask[order[240:400]] = True


class GraphConv(nn.Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(fan_in, fan_out))
        self.bias = nn.Parameter(torch.zeros(fan_out))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, num_feats, hidden, num_classes, dropout=0.3):
        super().__init__()
        self.conv1 = GraphConv(num_feats, hidden)
        self.conv2 = GraphConv(hidden, num_classes)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.dropout(x, self.dropout, training=self.training)
        x = F.relu(self.conv1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.conv2(x, adj)
        return F.softmax(x, dim=1)


graph = Graph()
model = GCN(graph.x.size(1), 32, int(graph.y.max()) + 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(graph.x, graph.adj)
    loss = F.cross_entropy(out[graph.train_mask], graph.y[graph.train_mask])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test():
    model.eval()
    pred = model(graph.x, graph.adj).argmax(dim=1)
    right = pred == graph.y
    return right[graph.train_mask].float().mean().item(), right[graph.val_mask].float().mean().item()


for epoch in range(1, 121):
    loss = train()
    if epoch % 20 == 0:
        train_acc, val_acc = test()
        print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Train: {train_acc:.4f}, Val: {val_acc:.4f}")
