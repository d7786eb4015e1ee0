"""Endless stream of drawn shapes, made in worker processes; a convolution tells crosses from rings."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class ShapeStream(IterableDataset):
    def __init__(self, per_worker, seed):
        self.per_worker = per_worker
        self.seed = seed

    def __iter__(self):
        worker = get_worker_info()
        assert worker is not None, "meant for worker processes"
        rng = np.random.default_rng(self.seed)
        rows, columns = np.mgrid[:16, :16]
        for _ in range(self.per_worker):
            cy, cx, size = rng.integers(5, 11), rng.integers(5, 11), rng.integers(3, 5)
            label = int(rng.integers(0, 2))
            distance = np.hypot(rows - cy, columns - cx)
            if label:
                image = np.abs(distance - size) < 0.8
            else:
                image = ((rows == cy) | (columns == cx)) & (distance <= size)
            image = image + rng.normal(0, 0.3, image.shape)
            yield torch.tensor((image - 0.1) / 0.4, dtype=torch.float32)[None], label


def build():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(24, 2),
    )


def main():
    torch.manual_seed(88)
    np.random.seed(88)
    loader = DataLoader(ShapeStream(640, 88), batch_size=32, num_workers=2)
    model, right, seen = build(), 0, 0
    optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)
    for step, (image, label) in enumerate(loader, 1):
        logits = model(image)
        loss = nn.functional.cross_entropy(logits, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right, seen = right + (logits.argmax(1) == label).sum().item(), seen + len(label)
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f} accuracy {right / seen:.3f}")


if __name__ == "__main__":
    main()
