"""Machine hum anomalies: autoencoder on log-spectra kept in one compressed archive."""

import os

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

ARCHIVE = "hum.npz"
N, BANDS = 1000, 96


def write_archive(path):
    rng = np.random.default_rng(77)
    bands = np.arange(BANDS)
    base = rng.uniform(8, 40, (N, 1))
    strength = rng.uniform(0.5, 1.5, (N, 3))
    spectra = np.zeros((N, BANDS))
    for harmonic in range(3):
        spectra += strength[:, harmonic : harmonic + 1] * np.exp(-((bands - base * (harmonic + 1) / 1.5) ** 2) / 18.0)
    spectra += rng.normal(0, 0.05, spectra.shape)
    spectra = (spectra - spectra.mean()) / spectra.std()
    np.savez_compressed(path, spectra=spectra.astype(np.float32), speed=base.astype(np.float32))


class HumSpectra(Dataset):
    def __init__(self, path, rows):
        self.path = path
        self.rows = rows
        self.spectra = np.load(path)["spectra"]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        spectra = self.spectra
        return torch.from_numpy(spectra[self.rows[i]])


class AutoEncoder(nn.Module):
    def __init__(self, code=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(BANDS, 64), nn.Tanh(), nn.Linear(64, code))
        self.decoder = nn.Sequential(nn.Linear(code, 64), nn.Tanh(), nn.Linear(64, BANDS))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def run():
    torch.manual_seed(5)
    np.random.seed(5)
    if not os.path.exists(ARCHIVE):
        write_archive(ARCHIVE)
    order = np.random.permutation(N)
    train_loader = DataLoader(HumSpectra(ARCHIVE, order[:800]), batch_size=32, shuffle=True)
    held_out = DataLoader(HumSpectra(ARCHIVE, order[800:900]), batch_size=50)
    model = AutoEncoder()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(3):
        model.train()
        track = []
        for x in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), x)
            loss.backward()
            optimizer.step()
            track.append(loss.item())
        model.eval()
        with torch.no_grad():
            held = np.mean([nn.functional.mse_loss(model(x), x).item() for x in held_out])
        print(f"epoch {epoch}: first {track[0]:.3f} last {track[-1]:.3f} held out {held:.3f}")


if __name__ == "__main__":
    run()
