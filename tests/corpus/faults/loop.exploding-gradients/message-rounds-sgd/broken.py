import numpy as np
import torch
import torch.nn as nn

SEED = 31
NODES, FEATS, STATE, ROUNDS = 12, 4, 24, 12


def heat_graphs(count, rng):
    """Sources spread over a random graph; the target is the value at every node after diffusion."""
    feats = rng.standard_normal((count, NODES, FEATS))
    upper = np.triu(rng.random((count, NODES, NODES)) < 0.22, 1)
    adj = (upper | upper.transpose(0, 2, 1)).astype(np.float64)
    degree = adj.sum(-1, keepdims=True)
    value = feats[..., :1] - 0.5 * feats[..., 1:2]
    for _ in range(3):
        value = 0.5 * value + 0.5 * (adj @ value) / np.maximum(degree, 1)
    value = (value - value.mean()) / value.std()
    return (torch.tensor(a, dtype=torch.float32) for a in (feats, adj, value))


class RecurrentGNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.read_in = nn.Linear(FEATS, STATE)
        self.self_loop = nn.Linear(STATE, STATE)
        self.neighbour = nn.Linear(STATE, STATE, bias=False)
        self.read_out = nn.Linear(STATE, 1)
        nn.init.xavier_uniform_(self.self_loop.weight, gain=0.6)
        nn.init.xavier_uniform_(self.neighbour.weight, gain=0.38)

    def forward(self, feats, adj):
        first = self.read_in(feats)
        h = torch.relu(first)
        for _ in range(ROUNDS):
            h = torch.relu(first + self.self_loop(h) + adj @ self.neighbour(h))
        return self.read_out(h)


def batches(tensors, size, gen):
    order = torch.randperm(len(tensors[0]), generator=gen)
    for part in order.split(size):
        yield [t[part] for t in tensors]


def evaluate(net, data):
    net.eval()
    with torch.no_grad():
        feats, adj, value = data
        return nn.functional.mse_loss(net(feats, adj), value).item()


def main():
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    train, test = list(heat_graphs(800, rng)), list(heat_graphs(160, rng))
    net = RecurrentGNN()
    sgd = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(4):
        net.train()
        total = 0.0
        for feats, adj, value in batches(train, 40, gen):
            sgd.zero_grad()
            loss = nn.functional.mse_loss(net(feats, adj), value)
            loss.backward()
            sgd.step()
            total += loss.item() / (len(train[0]) / 40)
        print(f"epoch {epoch} train {total:.4f} test {evaluate(net, test):.4f}")


if __name__ == "__main__":
    main()
