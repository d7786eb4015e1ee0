"""Pump failure within the next day, from six hours of sensor readings (Accelerate)."""

import numpy as np
import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

SENSORS, STEPS = 6, 36


def simulate(n, rng, failure_rate=0.02):
    """Failing pumps vibrate a little more towards the end of the window."""
    failing = rng.random(n) < failure_rate
    readings = rng.normal(0, 1, (n, STEPS, SENSORS))
    for t in range(1, STEPS):
        readings[:, t] = 0.6 * readings[:, t - 1] + 0.8 * readings[:, t]
    ramp = np.linspace(0, 1, STEPS)[None, :, None]
    shape = 0.85 * np.array([1.0, 0.7, 0.0, -0.5, 0.0, 0.3])
    readings += failing[:, None, None] * ramp * shape
    return torch.tensor(readings, dtype=torch.float32), torch.tensor(failing, dtype=torch.float32)


class FailureLSTM(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(SENSORS, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.out(self.norm(states.mean(dim=1))).squeeze(-1)


def evaluate(accelerator, model, loader):
    model.eval()
    true_pos = false_pos = false_neg = 0
    with torch.no_grad():
        for readings, failing in loader:
            alarm = model(readings).sigmoid() > 0.5
            alarm, failing = accelerator.gather_for_metrics((alarm, failing))
            true_pos += (alarm & (failing == 1)).sum().item()
            false_pos += (alarm & (failing == 0)).sum().item()
            false_neg += (~alarm & (failing == 1)).sum().item()
    recall = true_pos / max(true_pos + false_neg, 1)
    precision = true_pos / max(true_pos + false_pos, 1)
    return recall, precision


def main():
    set_seed(11)
    rng = np.random.default_rng(11)
    accelerator = Accelerator(cpu=True)

    train_x, train_y = simulate(6000, rng)
    val_x, val_y = simulate(1500, rng)
    mean, std = train_x.mean((0, 1)), train_x.std((0, 1))
    train_loader = DataLoader(TensorDataset((train_x - mean) / std, train_y), batch_size=256, shuffle=True)
    val_loader = DataLoader(TensorDataset((val_x - mean) / std, val_y), batch_size=250)

    criterion = nn.BCEWithLogitsLoss()
    model = FailureLSTM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)

    for epoch in range(6):
        model.train()
        losses = []
        for readings, failing in train_loader:
            loss = criterion(model(readings), failing)
            optimizer.zero_grad()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        recall, precision = evaluate(accelerator, model, val_loader)
        accelerator.print(f"epoch {epoch} loss {np.mean(losses):.4f} recall {recall:.3f} precision {precision:.3f}")


if __name__ == "__main__":
    main()
