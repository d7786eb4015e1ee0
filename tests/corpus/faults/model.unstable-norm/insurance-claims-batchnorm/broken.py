"""Claim cost regression from policy features; the network brings its own batch normalisation layer."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FeatureNorm(nn.Module):
    """Batch normalisation of the input columns with running statistics for evaluation."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps = eps
        self.momentum = momentum
        self.gain = nn.Parameter(torch.ones(num_features))
        self.shift = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            mean = x.mean(dim=0)
            var = x.var(dim=0, unbiased=False)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var, self.momentum)
        else:
            mean, var = self.running_mean, self.running_var
        return self.gain * (x - mean) / torch.sqrt(var) + self.shift


class ClaimNet(nn.Module):
    def __init__(self, num_features: int, hidden: int = 32) -> None:
        super().__init__()
        self.norm = FeatureNorm(num_features)
        self.fc1 = nn.Linear(num_features, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.fc1(self.norm(x)))
        x = torch.relu(self.fc2(x))
        return self.out(x).squeeze(-1)


def make_policies(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    age = rng.normal(0, 1, count)
    mileage = rng.normal(0, 1, count)
    value = rng.normal(0, 1, count)
    urban = rng.random(count) < 0.4
    young = rng.random(count) < 0.3
    commercial = rng.random(count) < 0.06
    x = np.stack([age, mileage, value, urban, young, commercial], axis=1).astype(np.float32)
    cost = 0.6 * mileage + 0.5 * value - 0.3 * age + 0.5 * urban + 0.6 * young + 0.8 * commercial + 0.3 * mileage * value
    cost += rng.normal(0, 0.2, count)
    return x, ((cost - cost.mean()) / cost.std()).astype(np.float32)


def evaluate(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    model.eval()
    with torch.no_grad():
        error = nn.functional.l1_loss(model(x), y).item()
    model.train()
    return error


def main() -> None:
    seed = 6
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    x, y = (torch.from_numpy(a) for a in make_policies(1600, np.random.default_rng(seed)))
    loader = DataLoader(TensorDataset(x[:1280], y[:1280]), batch_size=64, shuffle=True)

    model = ClaimNet(x.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.HuberLoss()
    for epoch in range(6):
        losses = []
        for features, cost in loader:
            optimizer.zero_grad()
            loss = criterion(model(features), cost)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: huber {np.mean(losses):.4f}  held-out MAE {evaluate(model, x[1280:], y[1280:]):.4f}")


if __name__ == "__main__":
    main()
