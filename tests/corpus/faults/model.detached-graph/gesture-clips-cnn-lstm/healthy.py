"""Classify the direction of a hand gesture in short clips: a CNN per frame, an LSTM over frames."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DIRECTIONS = 4
FRAMES = 6
SIDE = 14


class GestureClips(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.direction = rng.integers(0, DIRECTIONS, count)
        steps = {0: (0, 1), 1: (0, -1), 2: (1, 0), 3: (-1, 0)}
        yy, xx = np.mgrid[0:SIDE, 0:SIDE]
        clips = np.zeros((count, FRAMES, 1, SIDE, SIDE), dtype=np.float32)
        for i, direction in enumerate(self.direction):
            dy, dx = steps[int(direction)]
            y, x = SIDE / 2 + rng.uniform(-1, 1) - 3 * dy, SIDE / 2 + rng.uniform(-1, 1) - 3 * dx
            for frame in range(FRAMES):
                clips[i, frame, 0] = np.exp(-((yy - y - 1.2 * dy * frame) ** 2 + (xx - x - 1.2 * dx * frame) ** 2) / 4.0)
        clips += rng.normal(0, 0.1, clips.shape).astype(np.float32)
        self.clips = (clips - clips.mean()) / clips.std()

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        return self.clips[index], self.direction[index]


class FrameEncoder(nn.Module):
    def __init__(self, out_features):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 12, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.project = nn.Linear(12 * 4 * 4, out_features)

    def forward(self, frame):
        return self.project(self.features(frame).flatten(1))


class GestureNet(nn.Module):
    def __init__(self, feature_size=24, hidden=24):
        super().__init__()
        self.encoder = FrameEncoder(feature_size)
        self.lstm = nn.LSTM(feature_size, hidden, batch_first=True)
        self.classifier = nn.Linear(hidden, DIRECTIONS)

    def forward(self, clip):
        frame_features = []
        for t in range(clip.size(1)):
            feature = self.encoder(clip[:, t])
            frame_features.append(feature)
        sequence = torch.stack(frame_features, dim=1)
        _, (hidden, _) = self.lstm(sequence)
        return self.classifier(hidden[-1])


def train(model, loader, optimizer, loss_fn):
    model.train()
    for step, (clip, direction) in enumerate(loader):
        logits = model(clip)
        loss = loss_fn(logits, direction)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 8 == 0:
            print(f"    step {step:3d} loss {loss.item():.4f}")


def test(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for clip, direction in loader:
            correct += (model(clip).argmax(dim=1) == direction).sum().item()
    return correct / len(loader.dataset)


if __name__ == "__main__":
    random.seed(2)
    np.random.seed(2)
    torch.manual_seed(2)
    train_loader = DataLoader(GestureClips(480, 10), batch_size=24, shuffle=True)
    test_loader = DataLoader(GestureClips(96, 11), batch_size=96)
    model = GestureNet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(4):
        train(model, train_loader, optimizer, loss_fn)
        print(f"epoch {epoch}: test accuracy {test(model, test_loader):.3f}")
