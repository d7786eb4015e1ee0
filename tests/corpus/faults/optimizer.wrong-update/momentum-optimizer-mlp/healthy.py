"""Momentum SGD written out by hand, on a bag-of-symbols classifier."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Optimizer


class MomentumSGD(Optimizer):
    """buffer <- momentum * buffer + gradient;  parameter <- parameter - lr * buffer"""

    def __init__(self, params, lr, momentum=0.9):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buffer = self.state[p].get("buffer")
                if buffer is None:
                    buffer = self.state[p]["buffer"] = torch.zeros_like(p)
                buffer.mul_(group["momentum"]).add_(p.grad)
                p.add_(buffer, alpha=-group["lr"])


class SymbolClassifier(nn.Module):
    def __init__(self, symbols=30, classes=5):
        super().__init__()
        self.fc1 = nn.Linear(symbols, 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, counts):
        return self.fc2(F.elu(self.fc1(counts)))


def documents(n, rng, profile):
    topic = rng.integers(len(profile), size=n)
    counts = np.stack([rng.multinomial(40, profile[t]) for t in topic]).astype(np.float32)
    return torch.from_numpy((counts - 40 / 30) / 1.5), torch.from_numpy(topic)


def main():
    torch.manual_seed(410)
    np.random.seed(410)
    rng = np.random.default_rng(410)
    profile = rng.dirichlet(np.full(30, 3.0), size=5)
    x, y = documents(1500, rng, profile)
    x_dev, y_dev = documents(300, rng, profile)
    model = SymbolClassifier()
    optimizer = MomentumSGD(model.parameters(), lr=0.01, momentum=0.8)
    for epoch in range(3):
        model.train()
        losses = []
        for rows in torch.from_numpy(rng.permutation(len(x))).split(50):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_dev).argmax(1) == y_dev).float().mean().item()
        print(f"epoch {epoch} loss {np.mean(losses):.4f} dev accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
