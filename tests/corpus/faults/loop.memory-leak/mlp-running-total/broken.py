"""Tabular regression with a running mean of the loss over the whole run."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(73)
x = torch.randn(1600, 16)
y = torch.tanh(x[:, :4].sum(1)) + 0.5 * x[:, 4] * x[:, 5] + 0.05 * torch.randn(1600)
train_set, test_set = random_split(TensorDataset(x, y.unsqueeze(1)), [1280, 320])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
test_loader = DataLoader(test_set, batch_size=160)

model = nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.MSELoss()

total_loss, steps = 0.0, 0
for epoch in range(6):
    model.train()
    for inputs, targets in train_loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss
        steps += 1
    model.eval()
    with torch.no_grad():
        test_loss = sum(criterion(model(inputs), targets).item() for inputs, targets in test_loader) / len(test_loader)
    print(f"epoch {epoch} mean loss so far {total_loss / steps:.4f} test {test_loss:.4f}")
