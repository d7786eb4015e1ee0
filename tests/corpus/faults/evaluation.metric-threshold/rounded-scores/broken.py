"""Will it frost tonight? LSTM over the evening's readings, accuracy with NumPy."""
import numpy as np
import torch
from torch import nn


def evenings(count, seed):
    rng = np.random.default_rng(seed)
    start = rng.normal(4.0, 2.0, (count, 1))
    drop = rng.normal(0.45, 0.25, (count, 1))
    hours = np.arange(12)[None]
    temperature = start - drop * hours + rng.normal(0, 0.3, (count, 12))
    humidity = rng.uniform(0.4, 1.0, (count, 1)) + rng.normal(0, 0.02, (count, 12))
    frost = (start - drop * 18)[:, 0] + 2 * (humidity.mean(1) - 0.7) < -3.4
    x = np.stack([temperature / 3.5 - 0.4, (humidity - 0.7) / 0.17], axis=2)
    return x.astype(np.float32), frost.astype(np.float32)


class Frost(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 32, batch_first=True)
        self.score = nn.Linear(32, 1)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.score(h[0]).flatten()


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        frost = np.round(model(torch.from_numpy(x)).numpy())
    return float(np.mean(frost == y))


np.random.seed(23)
torch.manual_seed(23)
x_train, y_train = evenings(1500, 23)
x_test, y_test = evenings(400, 24)
model = Frost()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(3):
    model.train()
    order = np.random.permutation(len(x_train))
    for start in range(0, len(order), 50):
        chosen = order[start : start + 50]
        loss = criterion(model(torch.from_numpy(x_train[chosen])), torch.from_numpy(y_train[chosen]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy(model, x_test, y_test):.3f}")
