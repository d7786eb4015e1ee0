import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = ("water", "forest", "field", "town")
VOID = 255


class Tiles(Dataset):
    """Small multispectral tiles with a class per pixel. Annotators left some borders unlabelled."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        signatures = np.array([[0.1, 0.2, 0.7], [0.1, 0.7, 0.2], [0.6, 0.6, 0.2], [0.7, 0.4, 0.5]])
        self.items = []
        for _ in range(n):
            label = rng.integers(0, 4, (4, 4)).repeat(4, 0).repeat(4, 1)
            pixels = signatures[label] + 0.15 * rng.standard_normal((16, 16, 3))
            if rng.random() < 0.004:
                label[:, :2] = VOID
            self.items.append((pixels, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        pixels, label = self.items[i]
        image = torch.as_tensor((pixels - 0.4) / 0.3, dtype=torch.float32).permute(2, 0, 1)
        return {"image": image, "mask": torch.as_tensor(label, dtype=torch.long)}


class TinyUNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.mid = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2))
        self.head = nn.Conv2d(3 * width, len(CLASSES), 1)

    def forward(self, image):
        fine = self.down(image)
        return self.head(torch.cat([fine, self.mid(fine)], 1))


def train(epochs=1, seed=21):
    torch.manual_seed(seed)
    np.random.seed(seed)
    loader = DataLoader(Tiles(640, seed), batch_size=8, shuffle=True)
    net = TinyUNet()
    objective = nn.CrossEntropyLoss(ignore_index=VOID)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    for epoch in range(epochs):
        for i, batch in enumerate(loader):
            scores = net(batch["image"])
            loss = objective(scores, batch["mask"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            if i % 10 == 0:
                print(f"{epoch}:{i} loss {loss.item():.3f}")


if __name__ == "__main__":
    train()
