"""Two-stage job as on a preemptible queue: the first call stops at its time slot, the second goes on from the file."""
import os
import random
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SHAPES = 6


def digits(n, seed):
    rng = np.random.default_rng(seed)
    prototypes = np.random.default_rng(99).normal(size=(SHAPES, 1, 12, 12))
    label = rng.integers(0, SHAPES, n)
    image = 0.6 * prototypes[label] + 0.8 * rng.normal(size=(n, 1, 12, 12))
    return TensorDataset(torch.tensor(image, dtype=torch.float32), torch.tensor(label))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(16 * 9, SHAPES)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Job:
    def __init__(self, folder, epochs):
        self.path = os.path.join(folder, "last.pt")
        self.epochs = epochs
        self.epoch = 0
        self.data = digits(480, 1)
        self.held_out = digits(120, 2)
        self.model = ConvNet()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.loss_fn = nn.CrossEntropyLoss()

    def save(self):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": self.epoch}, self.path)

    def load(self):
        state = torch.load(self.path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.epoch = state["epoch"]

    def run(self, until):
        while self.epoch < min(until, self.epochs):
            # the order of an epoch follows from its number alone
            order = torch.Generator().manual_seed(1000 + self.epoch)
            self.model.train()
            total = 0.0
            for image, label in DataLoader(self.data, batch_size=24, shuffle=True, generator=order):
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(image), label)
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(label)
            self.epoch += 1
            print(f"epoch {self.epoch}: loss {total / len(self.data):.4f} accuracy {self.score():.3f}")
            self.save()

    @torch.no_grad()
    def score(self):
        self.model.eval()
        image, label = self.held_out.tensors
        return (self.model(image).argmax(1) == label).float().mean().item()


def main():
    random.seed(31)
    np.random.seed(31)
    torch.manual_seed(31)
    with tempfile.TemporaryDirectory() as folder:
        Job(folder, epochs=6).run(until=3)
        job = Job(folder, epochs=6)
        job.load()
        print(f"resuming after epoch {job.epoch}")
        job.run(until=6)


if __name__ == "__main__":
    main()
