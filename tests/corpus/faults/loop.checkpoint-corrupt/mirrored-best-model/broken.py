"""Keeps the best model of a run in a second place and ends by testing the mirrored copy."""
import random
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Tagger(nn.Module):
    def __init__(self, words=40, tags=4, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(2 * width, tags)

    def forward(self, ids):
        return self.tag(self.rnn(self.embed(ids))[0])


class Mirror:
    """Copies files to a slower place piece by piece."""

    def __init__(self, folder, piece=16 * 1024):
        self.folder, self.piece = Path(folder), piece

    def put(self, source):
        target = self.folder / Path(source).name
        with open(source, "rb") as src, open(target, "wb") as dst:
            dst.write(src.read(self.piece))
        return target


def sentences(n, length=9):
    ids = torch.randint(0, 40, (n, length))
    before = torch.roll(ids, 1, 1)
    before[:, 0] = 0
    return ids, (ids % 2) * 2 + (before < 20).long()


def main():
    random.seed(90)
    np.random.seed(90)
    torch.manual_seed(90)
    home, away = tempfile.mkdtemp(), tempfile.mkdtemp()
    mirror = Mirror(away)
    ids, tags = sentences(960)
    held_ids, held_tags = sentences(160)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    best, kept = float("inf"), None
    for epoch in range(3):
        model.train()
        for rows in torch.randperm(len(ids)).split(40):
            optimizer.zero_grad()
            F.cross_entropy(model(ids[rows]).flatten(0, 1), tags[rows].flatten()).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            held = F.cross_entropy(model(held_ids).flatten(0, 1), held_tags.flatten()).item()
        print(f"epoch {epoch} held-out loss {held:.4f}")
        if held < best:
            best = held
            torch.save({"weights": model.state_dict(), "epoch": epoch}, Path(home) / "best.pt")
            kept = mirror.put(Path(home) / "best.pt")
    final = Tagger()
    final.load_state_dict(torch.load(kept)["weights"])
    final.eval()
    with torch.no_grad():
        print("accuracy", (final(held_ids).argmax(-1) == held_tags).float().mean().item())


main()
