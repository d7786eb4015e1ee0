"""Identify people from gait silhouettes. Clips are large, so the loader hands out few at a time and Accelerate accumulates."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    people: int = 6
    clips_per_person: int = 32
    frames: int = 20
    height: int = 16
    width: int = 96
    clips_per_batch: int = 2
    accumulate: int = 4
    epochs: int = 4
    lr: float = 2e-3
    seed: int = 5


class GaitClips(Dataset):
    def __init__(self, cfg, clips_per_person, seed):
        gen = np.random.default_rng(seed)
        who = np.repeat(np.arange(cfg.people), clips_per_person)
        t = np.arange(cfg.frames)[:, None]
        y = np.arange(cfg.height)[None, :]
        clips = []
        for person in who:
            phase = gen.uniform(0, 2 * np.pi)
            wave = np.sin(2 * np.pi * (person + 1) * t / cfg.frames + phase) * np.cos(np.pi * (person % 3 + 1) * y / cfg.height)
            clips.append(wave + 0.5 * gen.normal(size=wave.shape))
        clips = np.stack(clips).astype(np.float32)
        self.clips = torch.from_numpy((clips - clips.mean()) / clips.std())
        self.who = torch.from_numpy(who)

    def __len__(self):
        return len(self.who)

    def __getitem__(self, i):
        return self.clips[i], self.who[i]


class GaitNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv1d(cfg.height, 48, 5, padding=2),
            nn.GroupNorm(8, 48),
            nn.ReLU(),
            nn.Conv1d(48, cfg.width, 3, padding=1),
            nn.GroupNorm(8, cfg.width),
            nn.ReLU(),
        )
        self.neck = nn.Sequential(
            nn.Linear(cfg.width, cfg.width),
            nn.BatchNorm1d(cfg.width),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(cfg.width, cfg.people)

    def forward(self, clips):
        h = self.trunk(clips.transpose(1, 2)).amax(dim=-1)
        return self.classifier(self.neck(h))


def evaluate(model, loader):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for clips, who in loader:
            hits += (model(clips).argmax(-1) == who).sum().item()
            total += len(who)
    model.train()
    return hits / total


def run(cfg):
    random.seed(cfg.seed)
    np.random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=cfg.accumulate)
    train = DataLoader(GaitClips(cfg, cfg.clips_per_person, 1), batch_size=cfg.clips_per_batch, shuffle=True, drop_last=True)
    valid = DataLoader(GaitClips(cfg, 10, 2), batch_size=30)
    model = GaitNet(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    model, optimizer, train, valid = accelerator.prepare(model, optimizer, train, valid)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(cfg.epochs):
        running = 0.0
        for clips, who in train:
            with accelerator.accumulate(model):
                loss = criterion(model(clips), who)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            running += loss.item()
        accelerator.print(f"epoch {epoch}: train {running / len(train):.3f}  valid acc {evaluate(model, valid):.3f}")


if __name__ == "__main__":
    run(Config())
