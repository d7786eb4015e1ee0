"""Keyword spotting on short spectrogram clips: a convolutional front end and a recurrent scorer trained together."""

import argparse
import math
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORDS = ("go", "stop", "left", "right", "yes")


class Clips(Dataset):
    """Each word is a pair of moving tones in noise, standardised over the whole band."""

    def __init__(self, size: int, seed: int, frames: int = 32, bands: int = 20) -> None:
        rng = np.random.default_rng(seed)
        self.items = []
        t = np.arange(frames)[:, None]
        f = np.arange(bands)[None, :]
        for _ in range(size):
            word = int(rng.integers(len(WORDS)))
            start = 2 + 3 * word + rng.normal(0, 0.6)
            slope = (word - 2) * 0.12
            ridge = np.exp(-0.5 * ((f - start - slope * t) / 1.2) ** 2)
            clip = ridge * rng.uniform(0.8, 1.4) + rng.normal(0, 0.35, size=(frames, bands))
            clip = (clip - clip.mean()) / clip.std()
            self.items.append((torch.from_numpy(clip.astype(np.float32)), word))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int):
        return self.items[index]


class FrontEnd(nn.Module):
    def __init__(self, bands: int, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(bands, width, 5, stride=2, padding=2)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, clip):
        return torch.relu(self.norm(self.conv(clip.transpose(1, 2)))).transpose(1, 2)


class Scorer(nn.Module):
    def __init__(self, width: int, num_words: int) -> None:
        super().__init__()
        self.rnn = nn.GRU(width, 32, batch_first=True)
        self.drop = nn.Dropout(0.4)
        self.out = nn.Linear(32, num_words)

    def forward(self, feats):
        states, _ = self.rnn(feats)
        return self.out(self.drop(states.mean(dim=1)))


def run_epoch(front, scorer, loader, opt):
    front.train()
    scorer.train()
    total = 0.0
    for clips, words in loader:
        opt.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(scorer(front(clips)), words)
        loss.backward()
        opt.step()
        total += loss.item() * len(words)
    return total / len(loader.dataset)


@torch.no_grad()
def assess(front, scorer, loader):
    front.eval()
    scorer.eval()
    hits, nll = 0, 0.0
    for clips, words in loader:
        logits = scorer(front(clips))
        nll += nn.functional.cross_entropy(logits, words, reduction="sum").item()
        hits += (logits.argmax(1) == words).sum().item()
    return hits / len(loader.dataset), nll / len(loader.dataset)


def main() -> None:
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=6)
    cli.add_argument("--lr", type=float, default=4e-3)
    cli.add_argument("--seed", type=int, default=11)
    args = cli.parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    train = DataLoader(Clips(400, seed=1), batch_size=32, shuffle=True, drop_last=True)
    held_out = DataLoader(Clips(160, seed=2), batch_size=80)
    front, scorer = FrontEnd(20, 24), Scorer(24, len(WORDS))
    opt = torch.optim.Adam([*front.parameters(), *scorer.parameters()], lr=args.lr)
    best = -math.inf
    for epoch in range(args.epochs):
        loss = run_epoch(front, scorer, train, opt)
        acc, nll = assess(front, scorer, held_out)
        best = max(best, acc)
        print(f"epoch {epoch}: train {loss:.3f}  held-out nll {nll:.3f} acc {acc:.3f} (best {best:.3f})")


if __name__ == "__main__":
    main()
