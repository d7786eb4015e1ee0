"""Concrete strength from the mix: regression with numpy arrays, the last part of the table held out."""
import numpy as np
import torch

rng = np.random.default_rng(13)
torch.manual_seed(13)
ROWS, HELD_OUT = 1200, 300

mix = rng.uniform(-1.7, 1.7, (ROWS, 6)).astype(np.float32)
strength = 1.2 * mix[:, 0] - 0.7 * mix[:, 1] ** 2 + 0.5 * mix[:, 2] * mix[:, 3] + rng.normal(0, 0.2, ROWS)
strength = ((strength + 0.67) / 1.5).astype(np.float32)
table = np.column_stack([mix, strength])

train_part = table[: ROWS - HELD_OUT]
held_part = table[-HELD_OUT:]


class Strength(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(6, 48), torch.nn.Linear(48, 48), torch.nn.Linear(48, 1)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.nn.functional.softplus(layer(x))
        return self.layers[-1](x)[:, 0]


def halves(rows):
    block = torch.as_tensor(rows)
    return block[:, :-1], block[:, -1]


model = Strength()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
for epoch in range(6):
    model.train()
    rng.shuffle(train_part)
    for start in range(0, len(train_part), 50):
        x, y = halves(train_part[start : start + 50])
        loss = torch.mean((model(x) - y) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        x, y = halves(held_part)
        error = torch.mean(torch.abs(model(x) - y)).item()
    print(f"epoch {epoch} mse {loss.item():.4f} held-out error {error:.4f}")
