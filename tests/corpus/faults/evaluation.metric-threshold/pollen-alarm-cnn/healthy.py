"""Raise an alarm when a slide image of the pollen trap shows ragweed grains."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def slides(count, rng):
    """Ragweed grains are small spiky rings; other pollen is smooth discs. Many slides are ambiguous."""
    y, x = np.mgrid[0:20, 0:20]
    images = rng.normal(0, 0.5, (count, 1, 20, 20)).astype(np.float32)
    labels = (rng.random(count) < 0.4).astype(np.float32)
    for i in range(count):
        for _ in range(rng.integers(1, 4)):
            cy, cx = rng.uniform(4, 16, 2)
            radius = np.hypot(y - cy, x - cx)
            disc = (radius < 3.2).astype(np.float32)
            images[i, 0] += 0.9 * disc
        if labels[i]:
            cy, cx = rng.uniform(4, 16, 2)
            radius = np.hypot(y - cy, x - cx)
            images[i, 0] += rng.uniform(0.4, 1.5) * ((radius > 2) & (radius < 4))
    return torch.from_numpy(images), torch.from_numpy(labels)


class PollenNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        return self.head(self.features(x)).squeeze(1)


class AlarmMetrics:
    """Counts over a pass; precision, recall and F1 at its end."""

    def __init__(self):
        self.tp = self.fp = self.fn = self.tn = 0

    def update(self, outputs, labels):
        alarms = torch.sigmoid(outputs) > 0.5
        truth = labels > 0.5
        self.tp += (alarms & truth).sum().item()
        self.fp += (alarms & ~truth).sum().item()
        self.fn += (~alarms & truth).sum().item()
        self.tn += (~alarms & ~truth).sum().item()

    def summary(self):
        precision = self.tp / max(self.tp + self.fp, 1)
        recall = self.tp / max(self.tp + self.fn, 1)
        f1 = 2 * precision * recall / max(precision + recall, 1e-9)
        accuracy = (self.tp + self.tn) / (self.tp + self.tn + self.fp + self.fn)
        return {"accuracy": accuracy, "precision": precision, "recall": recall, "f1": f1}


def run_epoch(model, loader, criterion, optimizer=None):
    training = optimizer is not None
    model.train(training)
    metrics, total, count = AlarmMetrics(), 0.0, 0
    with torch.set_grad_enabled(training):
        for images, labels in loader:
            outputs = model(images)
            loss = criterion(outputs, labels)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            else:
                metrics.update(outputs, labels)
            total += loss.item() * len(labels)
            count += len(labels)
    return total / count, metrics


def main():
    set_seed(8)
    rng = np.random.default_rng(8)
    train_loader = DataLoader(TensorDataset(*slides(1120, rng)), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(*slides(300, rng)), batch_size=100)
    model = PollenNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        train_loss, _ = run_epoch(model, train_loader, criterion, optimizer)
        val_loss, metrics = run_epoch(model, val_loader, criterion)
        line = " ".join(f"{name} {value:.3f}" for name, value in metrics.summary().items())
        print(f"epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} {line}")


if __name__ == "__main__":
    main()
