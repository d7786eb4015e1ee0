"""Per-pixel crack maps of weld radiographs with a two-level U-Net."""
import random
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

cfg = SimpleNamespace(seed=77, side=32, plates=320, epochs=4, batch=16, lr=1.5e-3)


def radiograph(rng, side):
    """Noise with a grain; a faint, thin, wandering line is the crack."""
    image = rng.normal(0, 1, (side, side))
    crack = np.zeros((side, side), dtype=np.float32)
    y = int(rng.integers(4, side - 4))
    start = int(rng.integers(0, side - 18))
    for x in range(start, start + int(rng.integers(10, 18))):
        crack[y, x] = 1.0
        y = int(np.clip(y + rng.integers(-1, 2), 0, side - 1))
    image = image + 1.6 * crack
    return image.astype(np.float32), crack


class Plates(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        pairs = [radiograph(rng, cfg.side) for _ in range(count)]
        self.images = torch.from_numpy(np.stack([p[0] for p in pairs])).unsqueeze(1)
        self.cracks = torch.from_numpy(np.stack([p[1] for p in pairs])).unsqueeze(1)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, k):
        return {"image": self.images[k], "crack": self.cracks[k]}


def block(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
        nn.GroupNorm(4, c_out),
        nn.ReLU(inplace=True),
        nn.Conv2d(c_out, c_out, 3, padding=1),
        nn.ReLU(inplace=True),
    )


class TinyUNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.down = block(1, width)
        self.bottom = block(width, 2 * width)
        self.lift = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.up = block(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, image):
        skip = self.down(image)
        deep = self.lift(self.bottom(F.max_pool2d(skip, 2)))
        return self.out(self.up(torch.cat([skip, deep], dim=1)))


def recall_and_precision(model, loader):
    model.eval()
    found = real = claimed = 0.0
    with torch.no_grad():
        for batch in loader:
            claim = torch.sigmoid(model(batch["image"])) > 0.5
            truth = batch["crack"] > 0
            found += (claim & truth).sum().item()
            real += truth.sum().item()
            claimed += claim.sum().item()
    return found / real, found / max(claimed, 1.0)


def train():
    train_plates = Plates(cfg.plates, cfg.seed)
    loader = DataLoader(train_plates, batch_size=cfg.batch, shuffle=True)
    test_loader = DataLoader(Plates(64, cfg.seed + 1), batch_size=32)
    model = TinyUNet()
    positive = train_plates.cracks.mean()
    criterion = nn.BCEWithLogitsLoss(pos_weight=(1 - positive) / positive)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    print(f"{positive.item():.3%} of the pixels are crack")
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for batch in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch["image"]), batch["crack"])
            loss.backward()
            optimizer.step()
            total += loss.item()
        recall, precision = recall_and_precision(model, test_loader)
        print(f"epoch {epoch}: loss {total / len(loader):.4f} recall {recall:.3f} precision {precision:.3f}")


if __name__ == "__main__":
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    train()
