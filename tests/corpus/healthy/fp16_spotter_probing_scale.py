"""Keyword spotting in float16: gradients are unscaled, logged and clipped; the scale probes for headroom now and then."""

import copy
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WORDS, BANDS, FRAMES = 5, 12, 20


def spectrograms(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    templates = np.random.default_rng(0).normal(0.0, 1.0, (WORDS, BANDS, FRAMES))
    rng = np.random.default_rng(seed)
    words = rng.integers(0, WORDS, count)
    clips = np.stack([np.roll(templates[w], rng.integers(-2, 3), axis=1) for w in words])
    clips = clips + rng.normal(0.0, 1.0, clips.shape)
    clips = (clips - clips.mean(axis=(1, 2), keepdims=True)) / (clips.std(axis=(1, 2), keepdims=True) + 1e-5)
    return torch.tensor(clips, dtype=torch.float32), torch.tensor(words)


class Spotter(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(BANDS, width, 5, padding=2)
        self.norm1 = nn.GroupNorm(4, width)
        self.conv2 = nn.Conv1d(width, width, 5, padding=2)
        self.norm2 = nn.GroupNorm(4, width)
        self.head = nn.Linear(width, WORDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.norm1(self.conv1(x)))
        x = x + F.relu(self.norm2(self.conv2(x)))
        return self.head(x.amax(dim=2))


def main() -> None:
    random.seed(40)
    np.random.seed(40)
    torch.manual_seed(40)
    train_x, train_y = spectrograms(800, 1)
    valid_x, valid_y = spectrograms(160, 2)
    loader = DataLoader(TensorDataset(train_x, train_y), batch_size=32, shuffle=True)
    model = Spotter()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=25)
    skipped = steps = 0
    for epoch in range(5):
        model.train()
        losses = []
        for clips, words in loader:
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(clips)
            loss = F.cross_entropy(logits.float(), words)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            skipped += scaler.get_scale() < before
            steps += 1
            with torch.no_grad():
                for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                    slow.lerp_(fast, 0.1)
            losses.append(loss.item())
        average.eval()
        with torch.no_grad():
            hits = (average(valid_x).argmax(dim=1) == valid_y).float().mean().item()
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}  averaged model {hits:.3f}  skipped {skipped}/{steps}")


if __name__ == "__main__":
    main()
