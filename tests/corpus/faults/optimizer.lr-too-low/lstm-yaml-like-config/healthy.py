"""Keyword spotting on simulated spectrogram frames: LSTM, AdamW, settings in one dictionary."""
import random

import numpy as np
import torch
import torch.nn as nn

CONFIG = {
    "seed": 303,
    "data": {"words": 6, "frames": 14, "bands": 10, "train": 900, "dev": 240},
    "model": {"hidden": 40},
    "optim": {"lr": 5e-3, "weight_decay": 0.0},
    "run": {"epochs": 4, "batch": 36},
}


class Spotter(nn.Module):
    def __init__(self, bands, hidden, words):
        super().__init__()
        self.lstm = nn.LSTM(bands, hidden, batch_first=True)
        self.out = nn.Linear(hidden, words)

    def forward(self, frames):
        states, _ = self.lstm(frames)
        return self.out(states.mean(dim=1))


def simulate(n, d, templates, rng):
    word = rng.integers(d["words"], size=n)
    frames = templates[word] + rng.normal(0, 1.2, size=(n, d["frames"], d["bands"]))
    return torch.tensor(frames / 1.3, dtype=torch.float32), torch.from_numpy(word)


def run(config):
    random.seed(config["seed"])
    np.random.seed(config["seed"])
    torch.manual_seed(config["seed"])
    d = config["data"]
    rng = np.random.default_rng(config["seed"])
    templates = 0.5 * rng.normal(size=(d["words"], d["frames"], d["bands"]))
    x, y = simulate(d["train"], d, templates, rng)
    x_dev, y_dev = simulate(d["dev"], d, templates, rng)

    model = Spotter(d["bands"], config["model"]["hidden"], d["words"])
    optimizer = torch.optim.AdamW(model.parameters(), **config["optim"])
    criterion = nn.CrossEntropyLoss()
    for epoch in range(config["run"]["epochs"]):
        model.train()
        losses = []
        for rows in torch.randperm(len(x)).split(config["run"]["batch"]):
            optimizer.zero_grad()
            loss = criterion(model(x[rows]), y[rows])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_dev).argmax(1) == y_dev).float().mean().item()
        print(f"epoch {epoch} loss {np.mean(losses):.5f} dev accuracy {accuracy:.3f}")


if __name__ == "__main__":
    run(CONFIG)
