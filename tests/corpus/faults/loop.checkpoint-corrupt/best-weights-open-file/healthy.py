"""Autoencoder for vibration snippets; keeps the best weights in a file and scores anomalies with them at the end."""
import io
import os
import pathlib
import random
import shutil

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

WORK = pathlib.Path("checkpoints")


def snippets(count, seed, faulty=False):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, 48)
    freq = rng.uniform(2, 4, (count, 1))
    wave = np.sin(2 * np.pi * (freq * t + rng.uniform(0, 1, (count, 1))))
    if faulty:
        wave += 0.8 * np.sign(np.sin(2 * np.pi * 11 * t))
    return torch.tensor(wave + 0.1 * rng.normal(size=wave.shape), dtype=torch.float32)


class Autoencoder(nn.Module):
    def __init__(self, width=48, code=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, 64), nn.ELU(), nn.Linear(64, code))
        self.decoder = nn.Sequential(nn.Linear(code, 64), nn.ELU(), nn.Linear(64, width))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class BestKeeper:
    def __init__(self, path):
        self.path = path
        self.best = float("inf")
        self.file = None

    def update(self, value, model, epoch):
        if value >= self.best:
            return False
        self.best = value
        payload = io.BytesIO()
        torch.save({"weights": model.state_dict(), "epoch": epoch, "value": value}, payload)
        payload.seek(0)
        partial = self.path.with_suffix(".part")
        with open(partial, "wb") as self.file:
            shutil.copyfileobj(payload, self.file, 1024)
        os.replace(partial, self.path)
        return True

    def restore(self, model):
        state = torch.load(self.path)
        model.load_state_dict(state["weights"])
        return state["epoch"]


def main():
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    WORK.mkdir(exist_ok=True)
    loader = DataLoader(TensorDataset(snippets(640, 1)), batch_size=32, shuffle=True)
    valid = snippets(128, 2)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    keeper = BestKeeper(WORK / "best.pt")
    for epoch in range(5):
        model.train()
        for (x,) in loader:
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            value = nn.functional.mse_loss(model(valid), valid).item()
        kept = keeper.update(value, model, epoch)
        print(f"epoch {epoch} train {loss.item():.4f} valid {value:.4f}{' *' if kept else ''}")

    final = Autoencoder()
    print("best epoch", keeper.restore(final))
    final.eval()
    with torch.no_grad():
        for name, x in (("sound", snippets(64, 3)), ("faulty", snippets(64, 4, faulty=True))):
            print(name, f"{(final(x) - x).square().mean().item():.4f}")


if __name__ == "__main__":
    main()
