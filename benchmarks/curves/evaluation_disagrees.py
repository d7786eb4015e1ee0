"""evaluation.preprocessing-mismatch: validation rows are standardised by their own, wider spread."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = 40 + 12 * torch.randn(1200, 6)
targets = ((inputs - 40) / 12) @ torch.randn(6) + 0.5 * torch.randn(1200)
train_x, train_y = (inputs[:900] - 40) / 12, targets[:900]
val_x, val_y = (inputs[900:] - 40) / 30, targets[900:]
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=30, shuffle=True)
model = nn.Linear(6, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(10):
    model.train()
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x)[:, 0], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(float(nn.functional.mse_loss(model(val_x)[:, 0], val_y)))
