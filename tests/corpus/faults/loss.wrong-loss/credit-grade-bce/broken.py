"""Grade loan applications as A, B or C from twelve ratios."""

import numpy as np
import random
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def applications(n, rng):
    x = rng.normal(size=(n, 12)).astype("float32")
    risk = x[:, 0] - 0.8 * x[:, 3] + 0.5 * x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=n)
    grade = np.digitize(risk, [-0.6, 0.7])
    return torch.from_numpy(x), torch.from_numpy(grade)


class GradeNet(nn.Module):
    def __init__(self, num_features=12, hidden=48, dropout=0.1, outputs=1):
        super().__init__()
        self.input_norm = nn.LayerNorm(num_features)
        self.block1 = nn.Sequential(nn.Linear(num_features, hidden), nn.SiLU(), nn.Dropout(dropout))
        self.block2 = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU(), nn.Dropout(dropout))
        self.out = nn.Linear(hidden, outputs)

    def forward(self, x):
        h = self.block1(self.input_norm(x))
        h = h + self.block2(h)
        return self.out(h)


class Experiment:
    def __init__(self, seed=4):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        rng = np.random.default_rng(seed)
        self.train_data = TensorDataset(*applications(1500, rng))
        self.test_data = TensorDataset(*applications(400, rng))
        self.net = GradeNet()
        self.loss_fn = nn.BCEWithLogitsLoss()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=2e-3)

    def loss(self, x, grade):
        return self.loss_fn(self.net(x).squeeze(-1), grade.float())

    def predict(self, x):
        return (2 * torch.sigmoid(self.net(x).squeeze(-1))).round().long()

    def fit(self, epochs=5):
        for epoch in range(epochs):
            self.net.train()
            losses = []
            for x, grade in DataLoader(self.train_data, batch_size=75, shuffle=True):
                loss = self.loss(x, grade)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                losses.append(loss.item())
            print(f"epoch {epoch}: loss {np.mean(losses):.4f}, test accuracy {self.test():.3f}")

    def test(self):
        self.net.eval()
        x, grade = self.test_data.tensors
        with torch.no_grad():
            return (self.predict(x) == grade).float().mean().item()


if __name__ == "__main__":
    Experiment().fit()
