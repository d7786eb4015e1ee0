"""Estimate the toxicity index of a molecule from its descriptors: one wide hidden layer, plain SGD, early days."""
import math
import random

import numpy as np
import torch
from torch import nn


class WideNet(nn.Module):
    def __init__(self, descriptors, width):
        super().__init__()
        self.hidden = nn.Linear(descriptors, width)
        self.readout = nn.Linear(width, 1)
        nn.init.normal_(self.hidden.weight, std=1.0 / math.sqrt(descriptors))
        nn.init.normal_(self.readout.weight, std=1.0 / math.sqrt(width))

    def forward(self, x):
        return self.readout(torch.tanh(self.hidden(x))).squeeze(-1)


class Estimator:
    def __init__(self, descriptors=20, width=768, lr=2e-4, seed=404):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.direction = np.random.normal(size=(descriptors, 2)) / math.sqrt(descriptors)
        self.model = WideNet(descriptors, width)
        self.dtype = next(self.model.parameters()).dtype
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)

    def molecules(self, n):
        x = np.random.normal(size=(n, self.direction.shape[0]))
        score = x @ self.direction
        y = 0.9 * score[:, 0] + 0.5 * np.tanh(score[:, 1])
        return torch.tensor(x).to(self.dtype), torch.tensor(y, dtype=torch.float32)

    def loss(self, x, y):
        return nn.functional.mse_loss(self.model(x).float(), y)

    def fit(self, updates=400, batch=32):
        self.model.train()
        window = []
        for update in range(1, updates + 1):
            loss = self.loss(*self.molecules(batch))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            window.append(loss.item())
            if update % 80 == 0:
                print(f"update {update} loss {np.mean(window):.4f} test {self.test():.4f}")
                window.clear()

    @torch.no_grad()
    def test(self):
        self.model.eval()
        value = self.loss(*self.molecules(1000)).item()
        self.model.train()
        return value


if __name__ == "__main__":
    Estimator().fit()
