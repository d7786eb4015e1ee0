"""Load a pre-trained state dict and fine-tune with a learning rate thirty times smaller than in pre-training."""
import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, d_in: int = 12, width: int = 64) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(d_in, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.trunk(x)).squeeze(-1)


def sensor_readings(n: int, drift: float, seed: int) -> TensorDataset:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, generator=g)
    w = torch.linspace(-0.5, 0.5, 12)
    y = torch.sin(x @ w) + 0.3 * torch.relu(x[:, 0]) + drift + 0.05 * torch.randn(n, generator=g)
    return TensorDataset(x, y)


def pretrain() -> bytes:
    net = Regressor()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    loader = DataLoader(sensor_readings(1536, 0.0, 1), batch_size=64, shuffle=True)
    for epoch in range(5):
        running = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
        print(f"pretrain {epoch}: {running / len(loader):.4f}")
    buffer = io.BytesIO()
    torch.save(net.state_dict(), buffer)
    return buffer.getvalue()


def finetune(checkpoint: bytes) -> None:
    net = Regressor()
    net.load_state_dict(torch.load(io.BytesIO(checkpoint), weights_only=True))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.0)
    train = DataLoader(sensor_readings(960, 0.5, 2), batch_size=32, shuffle=True)
    x_val, y_val = sensor_readings(256, 0.5, 3).tensors
    for epoch in range(4):
        net.train()
        seen, total = 0, 0.0
        for x, y in train:
            prediction = net(x)
            assert prediction.shape == y.shape
            loss = nn.functional.mse_loss(prediction, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total, seen = total + loss.item() * len(y), seen + len(y)
        net.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(net(x_val), y_val).item()
        print(f"finetune {epoch}: train {total / seen:.4f} val {val:.4f}")


if __name__ == "__main__":
    torch.manual_seed(14)
    finetune(pretrain())
