"""The loader hands out raw 0-255 bytes; the model's first module turns them into standardised floats."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean.view(1, -1, 1, 1))
        self.register_buffer("std", std.view(1, -1, 1, 1))

    def forward(self, image):
        return (image.float() / 255.0 - self.mean) / self.std


class FlagDataset(Dataset):
    """Two-colour flags: horizontal, vertical, diagonal or quartered, in random colours, as uint8."""

    def __init__(self, n, seed, side=12):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 4, (n,), generator=g)
        colours = torch.randint(30, 226, (n, 2, 3), generator=g)
        yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
        half = side // 2
        layouts = torch.stack([yy < half, xx < half, xx > yy, (yy < half) ^ (xx < half)]).long()
        images = torch.stack([colours[i][layouts[k]].permute(2, 0, 1) for i, k in enumerate(self.labels.tolist())])
        noise = torch.randint(-25, 26, images.shape, generator=g)
        self.images = (images + noise).clamp(0, 255).to(torch.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


def channel_statistics(dataset):
    x = dataset.images.float() / 255.0
    return x.mean(dim=(0, 2, 3)), x.std(dim=(0, 2, 3))


def build_model(mean, std):
    return nn.Sequential(
        Normalize(mean, std),
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 9, 4),
    )


def main():
    torch.manual_seed(75)
    train_set, val_set = FlagDataset(960, 1), FlagDataset(240, 2)
    model = build_model(*channel_statistics(train_set))
    train_loader = DataLoader(train_set, batch_size=48, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=80)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        model.train()
        loss_sum = 0.0
        for images, labels in train_loader:
            loss = criterion(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(labels)
        model.eval()
        with torch.inference_mode():
            hits = sum((model(images).argmax(1) == labels).sum().item() for images, labels in val_loader)
        print(f"epoch {epoch} train loss {loss_sum / len(train_set):.3f} val accuracy {hits / len(val_set):.3f}")


if __name__ == "__main__":
    main()
