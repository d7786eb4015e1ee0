"""float16 autocast with a GradScaler that probes for a larger scale often, so a step is skipped now and then."""
import torch
from torch import nn
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader, TensorDataset


def make_data(n=2048, d=20):
    g = torch.Generator().manual_seed(70)
    x = torch.randn(n, d, generator=g)
    w = torch.randn(d, 5, generator=g)
    y = (x @ w / d**0.5 + 0.5 * torch.sin(2 * x[:, :5]) + 0.1 * torch.randn(n, 5, generator=g)).argmax(1)
    return TensorDataset(x, y)


def main():
    torch.manual_seed(70)
    loader = DataLoader(make_data(), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    scaler = GradScaler("cpu", init_scale=2.0**17, growth_interval=15)
    skipped = steps = 0
    for epoch in range(4):
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            with autocast("cpu", dtype=torch.float16):
                logits = model(x)
            loss = criterion(logits.float(), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            before = scaler.get_scale()
            scaler.update()
            skipped += scaler.get_scale() < before
            steps += 1
            running += loss.item()
        print(f"epoch {epoch} loss {running / len(loader):.3f} scale 2^{torch.tensor(scaler.get_scale()).log2().item():.0f} skipped {skipped}/{steps}")


if __name__ == "__main__":
    main()
