import numpy as np
import torch
from torch import nn

torch.manual_seed(10)
np.random.seed(10)
X = np.random.randn(800, 8).astype(np.float32)
Y = (X[:, :3].sum(1, keepdims=True) + 0.3 * X[:, 3:4] ** 2 - 0.3).astype(np.float32)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.MSELoss()
for epoch in range(4):
    order = np.random.permutation(800)
    history = []
    for start in range(0, 800, 40):
        pick = order[start : start + 40]
        prediction = model(torch.from_numpy(X[pick]))
        loss = criterion(prediction, torch.from_numpy(Y[pick]))
        loss = torch.tensor(loss.item(), requires_grad=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    print(f"epoch {epoch} mse {np.mean(history):.4f}")
