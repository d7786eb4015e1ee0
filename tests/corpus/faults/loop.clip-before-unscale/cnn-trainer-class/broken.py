"""Image classifier on synthetic shapes; AMP engine in a class."""
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


MEAN, STD = 0.21, 0.96  # of the generator below


def draw_shapes(count, seed, size=12):
    """Vertical bars, horizontal bars, diagonals and blobs on a noisy background."""
    g = torch.Generator().manual_seed(seed)
    images = 0.8 * torch.randn(count, 1, size, size, generator=g)
    labels = torch.randint(0, 4, (count,), generator=g)
    offsets = torch.randint(2, size - 3, (count, 2), generator=g)
    for image, label, (row, col) in zip(images, labels.tolist(), offsets.tolist(), strict=True):
        if label == 0:
            image[0, :, col : col + 2] += 1.5
        elif label == 1:
            image[0, row : row + 2, :] += 1.5
        elif label == 2:
            image[0].diagonal(col - size // 2).add_(2.0)
        else:
            image[0, row - 1 : row + 3, col - 1 : col + 3] += 1.5
    return TensorDataset((images - MEAN) / STD, labels)


class ShapeNet(nn.Module):
    def __init__(self, channels=16, classes=4):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.body = nn.Sequential(
            nn.GroupNorm(4, channels),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(4, channels),
            nn.SiLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.SiLU(),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(2 * channels, classes)

    def forward(self, x):
        return self.head(self.body(self.stem(x)))


@dataclass
class AmpEngine:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    max_norm: float = 0.5
    scaler: torch.amp.GradScaler = field(default_factory=lambda: torch.amp.GradScaler("cpu", init_scale=4096.0))

    def forward_loss(self, images, labels):
        with torch.autocast(device_type="cpu", dtype=torch.float16):
            logits = self.model(images)
        return nn.functional.cross_entropy(logits.float(), labels), logits

    def train_batch(self, images, labels):
        self.optimizer.zero_grad()
        loss, _ = self.forward_loss(images, labels)
        self.scaler.scale(loss).backward()
        self.apply_gradients()
        return loss.item()

    def apply_gradients(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        hits = total = 0
        for images, labels in loader:
            _, logits = self.forward_loss(images, labels)
            hits += (logits.argmax(1) == labels).sum().item()
            total += len(labels)
        self.model.train()
        return hits / total


def main():
    torch.manual_seed(64)
    model = ShapeNet()
    engine = AmpEngine(model, torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True))
    train = DataLoader(draw_shapes(480, seed=1), batch_size=24, shuffle=True)
    valid = DataLoader(draw_shapes(96, seed=2), batch_size=48)
    for epoch in range(1, 5):
        losses = [engine.train_batch(*batch) for batch in train]
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}, valid accuracy {engine.accuracy(valid):.3f}")


if __name__ == "__main__":
    main()
