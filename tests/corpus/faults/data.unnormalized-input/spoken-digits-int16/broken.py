"""Recognise which of six tones is spoken from 16-bit PCM clips (simulated recordings)."""

import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

RATE = 2000
CLIP = 800
PITCHES = [110, 160, 230, 320, 440, 600]


def synth_clip(label: int, rng: np.random.Generator) -> np.ndarray:
    t = np.arange(CLIP) / RATE
    pitch = PITCHES[label] * rng.uniform(0.95, 1.05)
    wave = np.sin(2 * np.pi * pitch * t + rng.uniform(0, 6.28)) + 0.5 * np.sin(4 * np.pi * pitch * t + rng.uniform(0, 6.28))
    wave = wave * rng.uniform(0.7, 1.0) + 0.1 * rng.standard_normal(CLIP)
    return np.clip(wave / 1.6 * 32767, -32768, 32767).astype(np.int16)


class PCMDataset(Dataset):
    def __init__(self, size: int, seed: int):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(PITCHES), size)
        self.clips = [synth_clip(int(label), rng) for label in self.labels]

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, i):
        audio = torch.from_numpy(self.clips[i]).float()
        return audio.unsqueeze(0), int(self.labels[i])


class M3(nn.Module):
    """A cut-down raw-waveform network."""

    def __init__(self, channels: int = 16):
        super().__init__()
        self.conv1 = nn.Conv1d(1, channels, kernel_size=40, stride=4)
        self.pool1 = nn.MaxPool1d(4)
        self.conv2 = nn.Conv1d(channels, 2 * channels, kernel_size=3)
        self.pool2 = nn.MaxPool1d(4)
        self.fc = nn.Linear(2 * channels, len(PITCHES))

    def forward(self, x):
        x = self.pool1(torch.relu(self.conv1(x)))
        x = self.pool2(torch.relu(self.conv2(x)))
        x = x.mean(dim=-1)
        return self.fc(x)


def run_epoch(model, loader, loss_fn, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total_loss, hits, seen = 0.0, 0, 0
    with torch.set_grad_enabled(training):
        for audio, label in loader:
            logits = model(audio)
            loss = loss_fn(logits, label)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total_loss += loss.item() * len(label)
            hits += (logits.argmax(1) == label).sum().item()
            seen += len(label)
    return total_loss / seen, hits / seen


if __name__ == "__main__":
    random.seed(77)
    np.random.seed(77)
    torch.manual_seed(77)
    train_loader = DataLoader(PCMDataset(600, 1), batch_size=40, shuffle=True)
    dev_loader = DataLoader(PCMDataset(120, 2), batch_size=60)
    model = M3()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(1, 7):
        train_loss, train_acc = run_epoch(model, train_loader, loss_fn, optimizer)
        dev_loss, dev_acc = run_epoch(model, dev_loader, loss_fn)
        print(f"{epoch}: train {train_loss:.3f}/{train_acc:.2f}  dev {dev_loss:.3f}/{dev_acc:.2f}")
