import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
np.random.seed(1)

rng = np.random.default_rng(1)
n, length = 1200, 64
kind = rng.integers(0, 3, n)
t = np.arange(length)
freq = np.array([0.05, 0.12, 0.25])[kind] * rng.uniform(0.9, 1.1, n)
wave = np.sin(2 * np.pi * freq[:, None] * t + rng.uniform(0, 6.28, (n, 1))) * np.exp(-t / 40)
wave = wave + 0.3 * rng.standard_normal(wave.shape)
wave = (wave - wave[:1000].mean()) / wave[:1000].std()

dtype = torch.float16
device = torch.device("cpu")
X = torch.tensor(wave, dtype=dtype).unsqueeze(1)
Y = torch.tensor(kind)
train_dl = DataLoader(TensorDataset(X[:1000], Y[:1000]), batch_size=40, shuffle=True)
test_x, test_y = X[1000:], Y[1000:]

model = nn.Sequential(
    nn.Conv1d(1, 16, 7, stride=2, padding=3),
    nn.ReLU(),
    nn.Conv1d(16, 32, 5, stride=2, padding=2),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(4),
    nn.Flatten(),
    nn.Linear(128, 3),
)
model.to(device=device, dtype=dtype)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(5):
    model.train()
    running = 0.0
    for x, y in train_dl:
        optimizer.zero_grad()
        loss = loss_fn(model(x.to(device)).float(), y.to(device))
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        acc = (model(test_x).argmax(1) == test_y).float().mean().item()
    print(f"{epoch} loss={running / len(train_dl):.4f} acc={acc:.3f}")
