"""Keyword spotting with a float16 network whose optimizer works on float32 master copies, copied over by hand."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LOSS_SCALE = 256.0
CLASSES = 5


def make_clips(count, rng):
    labels = rng.integers(0, CLASSES, size=count)
    times = np.arange(32)
    clips = 0.5 * rng.normal(size=(count, 16, 32))
    for clip, label in zip(clips, labels):
        phase = rng.uniform(0, 2 * np.pi)
        clip[3 * label : 3 * label + 2] += np.sin(2 * np.pi * times * (label + 2) / 32 + phase)
    clips = (clips - clips.mean()) / clips.std()
    return TensorDataset(torch.from_numpy(clips).float(), torch.from_numpy(labels))


class Spotter(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.conv1 = nn.Conv1d(16, width, 5, padding=2)
        self.conv2 = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, clip):
        x = torch.relu(self.conv1(clip.half()))
        x = torch.relu(self.conv2(x))
        return self.head(x.mean(dim=-1)).float()


class MasterCopies:
    """Owns the float32 weights: the network's float16 ones are only what they look like rounded."""

    def __init__(self, model, lr):
        self.halves = list(model.parameters())
        self.masters = [p.detach().float().clone().requires_grad_(True) for p in self.halves]
        self.optimizer = torch.optim.SGD(self.masters, lr=lr, momentum=0.9)

    def step(self):
        for master, half in zip(self.masters, self.halves):
            master.grad = half.grad.float() / LOSS_SCALE
        norm = nn.utils.clip_grad_norm_(self.masters, 2.0)
        if torch.isfinite(norm):
            self.optimizer.step()
        with torch.no_grad():
            for master, half in zip(self.masters, self.halves):
                half.copy_(master)
                half.grad = None


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = sum((model(clip).argmax(-1) == label).sum().item() for clip, label in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    random.seed(21)
    np.random.seed(21)
    torch.manual_seed(21)
    rng = np.random.default_rng(21)
    train_loader = DataLoader(make_clips(480, rng), batch_size=32, shuffle=True)
    test_loader = DataLoader(make_clips(120, rng), batch_size=60)
    float_model = Spotter()
    model = float_model.half()
    masters = MasterCopies(model, lr=0.03)
    model.train()
    for epoch in range(6):
        total = 0.0
        for clip, label in train_loader:
            loss = F.cross_entropy(model(clip), label)
            (loss * LOSS_SCALE).backward()
            masters.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} accuracy {evaluate(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
