"""Transfer learning: pre-train a small conv net on one task, freeze its backbone on purpose, train a new head on another."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def oriented_gratings(n, num_classes, seed, freq):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, num_classes, (n,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    angle = (labels.float() * torch.pi / num_classes).view(-1, 1, 1)
    phase = torch.rand(n, 1, 1, generator=g) * 6.283
    img = torch.sin(freq * (xx * angle.cos() + yy * angle.sin()) + phase)
    img = img + 0.4 * torch.randn(n, 12, 12, generator=g)
    return TensorDataset((img / 0.82).unsqueeze(1), labels)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 12, 5, padding=2, bias=False), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )

    def forward(self, x):
        return self.layers(x)


class TransferNet(nn.Module):
    def __init__(self, backbone, num_classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(24, num_classes)
        for p in self.backbone.parameters():
            p.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()  # frozen statistics too
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


def fit(model, optimizer, loader, epochs, tag):
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        total, n = 0.0, 0
        for x, y in loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
            n += len(y)
        print(f"{tag} epoch {epoch} loss {total / n:.3f}")


def test(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(2)
    source = DataLoader(oriented_gratings(512, 6, seed=1, freq=1.2), batch_size=32, shuffle=True)
    pretraining = nn.Sequential(Backbone(), nn.Linear(24, 6))
    fit(pretraining, torch.optim.Adam(pretraining.parameters(), lr=3e-3), source, 2, "pretrain")

    target_train = DataLoader(oriented_gratings(384, 4, seed=3, freq=1.0), batch_size=32, shuffle=True)
    target_test = DataLoader(oriented_gratings(160, 4, seed=4, freq=1.0), batch_size=64)
    model = TransferNet(pretraining[0], 4)
    frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"frozen {frozen} parameters, training {sum(p.numel() for p in trainable)}")
    fit(model, torch.optim.Adam(trainable, lr=5e-3), target_train, 5, "transfer")
    print(f"test accuracy {test(model, target_test):.3f}")


if __name__ == "__main__":
    main()
