import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def load_rides(n=1200, seed=0):
    """Hourly bike demand from weather, hour and weekday; target is the standardised log of the count."""
    rng = np.random.default_rng(seed)
    hour = rng.uniform(0, 24, n)
    weekday = rng.integers(0, 7, n)
    temperature = rng.normal(0, 1, n)
    humidity = rng.normal(0, 1, n)
    wind = rng.normal(0, 1, n)
    busy = np.exp(-((hour - 8) ** 2) / 6) + 1.2 * np.exp(-((hour - 18) ** 2) / 8)
    log_count = 2 * busy * (weekday < 5) + 0.9 * (weekday >= 5) * np.exp(-((hour - 14) ** 2) / 20)
    log_count += 0.4 * temperature - 0.25 * humidity - 0.1 * wind + 0.15 * rng.normal(size=n)
    angle = 2 * np.pi * hour / 24
    columns = [np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle), temperature, humidity, wind]
    features = np.column_stack(columns + [np.eye(7)[weekday]]).astype(np.float32)
    target = ((log_count - 0.72) / 0.85).astype(np.float32)
    return TensorDataset(torch.from_numpy(features), torch.from_numpy(target))


class DemandNet(nn.Module):
    def __init__(self, inputs=14, hidden=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.GELU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def main():
    set_seed(42)
    accelerator = Accelerator(cpu=True)
    rides = load_rides()
    train_set, val_set = random_split(rides, [960, 240], generator=torch.Generator().manual_seed(1))
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(train_set, batch_size=120)

    model = DemandNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)

    best = float("inf")
    for epoch in range(6):
        model.train()
        for features, target in train_loader:
            loss = nn.functional.mse_loss(model(features), target)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()

        model.eval()
        squared, seen = 0.0, 0
        with torch.no_grad():
            for features, target in val_loader:
                predicted, target = accelerator.gather_for_metrics((model(features), target))
                squared += (predicted - target).square().sum().item()
                seen += target.numel()
        rmse = (squared / seen) ** 0.5
        best = min(best, rmse)
        accelerator.print(f"epoch {epoch}: train mse {loss.item():.4f} val rmse {rmse:.4f}")
    accelerator.print(f"best val rmse {best:.4f}")


if __name__ == "__main__":
    main()
