"""Second stage of defect detection: the convolutional trunk trained, then frozen with its norms; the cut-off is picked on held-out parts."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def parts(n, seed, kinds):
    """Castings with `kinds` sorts of flaw; a label per sort."""
    rng = np.random.default_rng(seed)
    flaws = np.random.default_rng(1000).normal(size=(4, 12, 12))
    present = (rng.random((n, 4)) < 0.3).astype(np.float32)
    image = 0.9 * np.einsum("nk,khw->nhw", present, flaws) + rng.normal(size=(n, 12, 12))
    image /= 1.25
    return TensorDataset(torch.tensor(image[:, None], dtype=torch.float32), torch.tensor(present[:, kinds]))


class Trunk(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 12, 3, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )


class Detector(nn.Module):
    def __init__(self, trunk, outputs, frozen):
        super().__init__()
        self.trunk, self.frozen = trunk, frozen
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(216, outputs)
        if frozen:
            trunk.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        if self.frozen:
            self.trunk.eval()
        return self

    def forward(self, image):
        return self.head(self.drop(self.trunk(image)))


def fit(model, loader, lr, epochs):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for image, label in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(image), label)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(label)
        print(f"epoch {epoch} loss {total / len(loader.dataset):.4f}")


@torch.no_grad()
def outputs(model, data):
    model.eval()
    pairs = [(model(image), label) for image, label in DataLoader(data, batch_size=64)]
    return torch.cat([p[0] for p in pairs]), torch.cat([p[1] for p in pairs])


def f1(predicted, label):
    return (2 * (predicted * label).sum() / (predicted.sum() + label.sum()).clamp_min(1)).item()


def main():
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)
    trunk = Trunk()
    fit(Detector(trunk, 3, frozen=False), DataLoader(parts(512, 1, [0, 1, 2]), batch_size=32, shuffle=True), 2e-3, 3)
    model = Detector(trunk, 1, frozen=True)
    fit(model, DataLoader(parts(384, 2, [3]), batch_size=32, shuffle=True), 5e-3, 5)
    logits, label = outputs(model, parts(200, 3, [3]))
    cuts = torch.linspace(-2, 2, 41)
    cut = max(cuts, key=lambda c: f1((logits > c).float(), label))
    logits, label = outputs(model, parts(200, 4, [3]))
    print(f"cut-off {cut.item():.2f} test f1 {f1((logits > cut).float(), label):.3f}")


main()
