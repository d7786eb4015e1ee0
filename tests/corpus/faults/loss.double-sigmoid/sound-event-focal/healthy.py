# Sound event detection: which of eight events are audible in each frame of a spectrogram.
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

EVENTS, BANDS, FRAMES = 8, 32, 40


def focal_loss(inputs, targets, alpha=0.6, gamma=1.5):
    """Focal loss for dense binary prediction."""
    p = torch.sigmoid(inputs)
    ce = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    alpha_t = alpha * targets + (1 - alpha) * (1 - targets)
    return (alpha_t * (1 - p_t) ** gamma * ce).mean()


class Soundscapes(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        timbre = np.random.default_rng(99).normal(size=(EVENTS, BANDS))
        active = np.zeros((count, FRAMES, EVENTS), dtype=np.float32)
        for i in range(count):
            for event in rng.permutation(EVENTS)[:3]:
                on = rng.integers(0, FRAMES - 12)
                active[i, on : on + rng.integers(6, 13), event] = 1
        power = active @ timbre + 0.7 * rng.normal(size=(count, FRAMES, BANDS))
        self.spectrogram = ((power - power.mean()) / power.std()).astype(np.float32)
        self.active = active

    def __len__(self):
        return len(self.active)

    def __getitem__(self, i):
        return self.spectrogram[i], self.active[i]


class Crnn(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(BANDS, hidden, 3, padding=1),
            nn.GroupNorm(4, hidden),
            nn.GELU(),
        )
        self.rnn = nn.GRU(hidden, hidden, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, EVENTS)

    def forward(self, spectrogram):
        h = self.front(spectrogram.transpose(1, 2)).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.head(h)


def f1(scores, truth):
    guess = scores > 0.5
    tp = (guess & truth.bool()).sum()
    return (2 * tp / (guess.sum() + truth.sum()).clamp(min=1)).item()


if __name__ == "__main__":
    random.seed(8)
    np.random.seed(8)
    torch.manual_seed(8)
    train_loader = DataLoader(Soundscapes(320, 0), batch_size=16, shuffle=True)
    valid_loader = DataLoader(Soundscapes(64, 1), batch_size=64)
    model = Crnn()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(4):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = focal_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        model.eval()
        with torch.no_grad():
            x, y = next(iter(valid_loader))
            quality = f1(model(x).sigmoid(), y)
        print(f"[{epoch}] focal {total / 320:.4f}  frame F1 {quality:.3f}")
