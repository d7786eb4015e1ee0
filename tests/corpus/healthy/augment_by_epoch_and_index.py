"""Augmentation drawn from (seed, epoch, index), so that any number of loader workers gives the same epoch."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 31
CLASSES = 4


class Glyphs(Dataset):
    def __init__(self, count: int, seed: int, augment: bool) -> None:
        rng = np.random.default_rng(seed)
        strokes = np.random.default_rng(0).normal(size=(CLASSES, 16, 16))
        strokes = (strokes + np.roll(strokes, 1, 1) + np.roll(strokes, 1, 2)) / 1.7
        self.labels = rng.integers(0, CLASSES, count)
        glyphs = strokes[self.labels] + 0.8 * rng.normal(size=(count, 16, 16))
        self.glyphs = (glyphs / glyphs.std()).astype(np.float32)
        self.augment = augment
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        glyph = self.glyphs[index]
        if self.augment:
            rng = np.random.default_rng((SEED, self.epoch, index))
            shift = rng.integers(-1, 2, size=2)
            glyph = np.roll(glyph, tuple(shift), (0, 1))
            glyph = glyph * rng.uniform(0.85, 1.15) + 0.1 * rng.normal(size=glyph.shape)
        return torch.as_tensor(glyph, dtype=torch.float32)[None], int(self.labels[index])


class GlyphNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 16, 48)
        self.fc2 = nn.Linear(48, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def main() -> None:
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    train_set = Glyphs(640, seed=1, augment=True)
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True, num_workers=2)
    val_loader = DataLoader(Glyphs(160, seed=2, augment=False), batch_size=80)
    model = GlyphNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3 * len(train_loader))
    for epoch in range(3):
        train_set.set_epoch(epoch)
        model.train()
        losses = []
        for glyph, label in train_loader:
            loss = F.cross_entropy(model(glyph), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            hits = sum((model(glyph).argmax(1) == label).sum().item() for glyph, label in val_loader)
        print(f"epoch {epoch}: loss {np.mean(losses):.4f} accuracy {hits / 160:.3f}")


if __name__ == "__main__":
    main()
