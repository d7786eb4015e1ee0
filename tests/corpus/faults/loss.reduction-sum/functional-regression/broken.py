"""Energy of a toy molecule from its descriptors: functional style, closures instead of classes."""
import torch
from torch import nn, optim


def make_dataset(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=g)
    energy = (x[:, 0] * x[:, 1] + torch.sin(2 * x[:, 2]) + 0.5 * x[:, 3] - 0.3 * x[:, 4] ** 2)
    energy = energy + 0.05 * torch.randn(n, generator=g)
    return x, energy


def standardiser(reference):
    mean, std = reference.mean(), reference.std()
    return lambda v: (v - mean) / std


def mlp(sizes, act=nn.SiLU):
    layers = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(a, b), act()]
    layers.append(nn.Linear(sizes[-2], sizes[-1]))
    return nn.Sequential(*layers)


def squared_error(predicted, wanted):
    return ((predicted - wanted) ** 2).sum()


def minibatches(x, y, size, gen):
    order = torch.randperm(len(x), generator=gen)
    for i in range(0, len(x) - size + 1, size):
        take = order[i:i + size]
        yield x[take], y[take]


def make_step(net, opt):
    def step(xb, yb):
        opt.zero_grad()
        loss = squared_error(net(xb).squeeze(-1), yb)
        loss.backward()
        opt.step()
        return loss.detach()

    return step


def rmse(net, x, y):
    net.eval()
    with torch.no_grad():
        value = (net(x).squeeze(-1) - y).pow(2).mean().sqrt().item()
    net.train()
    return value


def main(epochs=3, batch_size=128, lr=0.05, seed=12):
    torch.manual_seed(seed)
    gen = torch.Generator().manual_seed(seed)
    x, y = make_dataset(4096, seed)
    x_held, y_held = make_dataset(512, seed + 1)
    scale = standardiser(y)
    y, y_held = scale(y), scale(y_held)

    net = mlp([10, 64, 64, 1])
    opt = optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    step = make_step(net, opt)
    print(f"start     held-out rmse {rmse(net, x_held, y_held):.4f}")
    for epoch in range(epochs):
        losses = torch.stack([step(xb, yb) for xb, yb in minibatches(x, y, batch_size, gen)])
        print(
            f"epoch {epoch}   loss first {losses[0]:.4f} last {losses[-1]:.4f}   "
            f"held-out rmse {rmse(net, x_held, y_held):.4f}"
        )


main()
