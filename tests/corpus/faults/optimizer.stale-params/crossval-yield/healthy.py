"""Five-fold cross-validated crop-yield regression."""

import numpy as np
import torch
from sklearn.model_selection import KFold
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FOLDS, EPOCHS, BATCH, LR = 3, 8, 32, 3e-3


def load_fields(n=480, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 9)).astype("float32")
    y = 1.2 * x[:, 0] - 0.8 * x[:, 1] * x[:, 2] + 0.6 * np.tanh(2 * x[:, 3]) + 0.1 * rng.normal(size=n)
    y = (y - y.mean()) / y.std()
    return torch.from_numpy(x), torch.from_numpy(y.astype("float32")).unsqueeze(1)


class YieldNet(nn.Module):
    def __init__(self, n_in=9, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)


def fit_fold(model, optimizer, train_idx, x, y):
    loader = DataLoader(TensorDataset(x[train_idx], y[train_idx]), batch_size=BATCH, shuffle=True)
    for _ in range(EPOCHS):
        model.train()
        losses = []
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"   train mse {np.mean(losses):.4f}")


def evaluate(model, idx, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x[idx]), y[idx]).item()


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    x, y = load_fields()
    scores = []
    model = YieldNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    for fold, (train_idx, valid_idx) in enumerate(KFold(FOLDS, shuffle=True, random_state=0).split(x)):
        if fold > 0:
            model = YieldNet()
            optimizer = torch.optim.Adam(model.parameters(), lr=LR)
        print(f"fold {fold}")
        fit_fold(model, optimizer, train_idx, x, y)
        scores.append(evaluate(model, valid_idx, x, y))
        print(f"   valid mse {scores[-1]:.4f}")
    print(f"cv mse {np.mean(scores):.4f} +- {np.std(scores):.4f}")


if __name__ == "__main__":
    main()
