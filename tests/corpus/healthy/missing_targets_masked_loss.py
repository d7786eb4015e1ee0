"""Multi-assay regression with missing measurements. NaN marks a missing target; the loss leaves those entries out."""
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class AssayDataset(Dataset):
    NUM_ASSAYS = 6

    def __init__(self, n, seed, missing=0.35):
        g = torch.Generator().manual_seed(seed)
        weights = torch.randn(20, self.NUM_ASSAYS, generator=torch.Generator().manual_seed(4)) / 20**0.5
        self.x = torch.randn(n, 20, generator=g)
        y = torch.tanh(1.5 * self.x @ weights) * 1.4 + 0.1 * torch.randn(n, self.NUM_ASSAYS, generator=g)
        hole = torch.rand(n, self.NUM_ASSAYS, generator=g) < missing
        hole[:, 0] &= ~hole.all(1)  # at least one measurement per compound
        self.y = y.masked_fill(hole, float("nan"))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def masked_mse(pred, target):
    present = ~torch.isnan(target)
    # fill before subtracting: NaN * 0 would still be NaN, in the gradient too
    filled = torch.where(present, target, pred.detach())
    return (pred - filled).pow(2).sum() / present.sum()


def evaluate(model, loader):
    squares, n = 0.0, 0
    model.eval()
    with torch.inference_mode():
        for x, y in loader:
            present = ~torch.isnan(y)
            squares += (model(x)[present] - y[present]).pow(2).sum().item()
            n += present.sum().item()
    return squares / n


if __name__ == "__main__":
    torch.manual_seed(4)
    train, val = AssayDataset(1200, 1), AssayDataset(300, 2)
    train_loader = DataLoader(train, batch_size=50, shuffle=True)
    val_loader = DataLoader(val, batch_size=100)
    model = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, AssayDataset.NUM_ASSAYS))
    optimizer = optim.Adamax(model.parameters(), lr=4e-3)
    for epoch in range(6):
        model.train()
        losses = []
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = masked_mse(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} masked mse {sum(losses) / len(losses):.4f} val {evaluate(model, val_loader):.4f}")
