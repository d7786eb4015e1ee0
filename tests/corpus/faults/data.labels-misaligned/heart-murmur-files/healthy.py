"""Murmur / no murmur from one-second phonocardiograms: one .npy per recording and a sheet with the findings."""
import csv
import random
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

ROOT = Path("phono")
NUM_RECORDINGS = 640


def export(root, count, seed):
    """Stands in for the hospital's export: rec_<number>.npy and findings.csv, in order of admission."""
    rng = np.random.default_rng(seed)
    root.mkdir(exist_ok=True)
    with open(root / "findings.csv", "w", newline="") as sheet:
        out = csv.writer(sheet)
        out.writerow(["recording", "murmur"])
        t = np.linspace(0, 1, 128)
        for k in range(count):
            murmur = int(rng.random() < 0.45)
            beat = np.exp(-(((t * 4 + rng.random()) % 1 - 0.1) ** 2) / 0.004)
            noise = np.convolve(rng.normal(size=128), np.ones(3) / 3, mode="same")
            systole = ((t * 4 + rng.random()) % 1 > 0.55).astype(float)
            wave = beat + 0.5 * noise + murmur * 0.5 * systole * np.sin(2 * np.pi * rng.uniform(24, 32) * t)
            np.save(root / f"rec_{k}.npy", wave.astype(np.float32))
            out.writerow([f"rec_{k}", murmur])


def load(root):
    paths = sorted(root.glob("rec_*.npy"), key=lambda p: int(p.stem.split("_")[1]))
    waves = np.stack([np.load(p) for p in paths])
    with open(root / "findings.csv") as sheet:
        murmur = [float(row["murmur"]) for row in csv.DictReader(sheet)]
    waves = (waves - waves.mean(1, keepdims=True)) / waves.std(1, keepdims=True)
    return torch.from_numpy(waves).unsqueeze(1), torch.tensor(murmur)


def conv(c_in, c_out):
    return nn.Sequential(nn.Conv1d(c_in, c_out, 9, stride=2, padding=4), nn.ReLU())


class MurmurNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv(1, 12), conv(12, 24), conv(24, 24))
        self.score = nn.Linear(24, 1)

    def forward(self, wave):
        return self.score(self.features(wave).amax(dim=2)).squeeze(1)


def run_epoch(net, loader, criterion, optimizer=None):
    net.train(optimizer is not None)
    loss_sum, hits, seen = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for wave, murmur in loader:
            score = net(wave)
            loss = criterion(score, murmur)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(murmur)
            hits += ((score > 0) == (murmur > 0.5)).sum().item()
            seen += len(murmur)
    return loss_sum / seen, hits / seen


if __name__ == "__main__":
    random.seed(31)
    np.random.seed(31)
    torch.manual_seed(31)
    export(ROOT, NUM_RECORDINGS, seed=31)
    data = TensorDataset(*load(ROOT))
    train, valid = random_split(data, [512, 128], generator=torch.Generator().manual_seed(31))
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=64)
    net = MurmurNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(6):
        train_loss, train_acc = run_epoch(net, train_loader, criterion, optimizer)
        valid_loss, valid_acc = run_epoch(net, valid_loader, criterion)
        print(f"{epoch} train {train_loss:.4f} {train_acc:.3f} valid {valid_loss:.4f} {valid_acc:.3f}")
