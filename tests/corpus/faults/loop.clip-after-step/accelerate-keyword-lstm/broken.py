"""Keyword spotting on log-mel frames: a two-layer LSTM, run through Accelerate."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    num_mels: int = 16
    num_frames: int = 30
    num_words: int = 5
    hidden: int = 48
    batch_size: int = 32
    epochs: int = 6
    lr: float = 0.3
    max_norm: float = 0.25
    seed: int = 29


class Keywords(Dataset):
    """Every word is a sequence of three formant bands; the speaker sets the pace and the noise."""

    def __init__(self, count, settings, seed):
        rng = random.Random(seed)
        noise = np.random.default_rng(seed)
        paths = [(2, 9, 4), (9, 2, 12), (5, 5, 13), (12, 7, 2), (3, 12, 8)]
        self.examples = []
        for _ in range(count):
            word = rng.randrange(settings.num_words)
            frames = noise.normal(0, 0.8, (settings.num_frames, settings.num_mels)).astype(np.float32)
            start, pace = rng.randint(0, 6), rng.randint(5, 8)
            for part, band in enumerate(paths[word]):
                frames[start + part * pace : start + (part + 1) * pace, band : band + 2] += 2.0
            self.examples.append((torch.from_numpy(frames - frames.mean()), word))

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        return self.examples[index]


class Spotter(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.lstm = nn.LSTM(settings.num_mels, settings.hidden, num_layers=2, batch_first=True)
        self.classify = nn.Linear(settings.hidden, settings.num_words)

    def forward(self, frames):
        states, _ = self.lstm(frames)
        return self.classify(states.mean(dim=1))


def evaluate(accelerator, model, loader):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for frames, words in loader:
            guesses, words = accelerator.gather_for_metrics((model(frames).argmax(-1), words))
            right += (guesses == words).sum().item()
            seen += len(words)
    return right / seen


def main():
    settings = Settings()
    set_seed(settings.seed)
    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(Keywords(640, settings, 1), batch_size=settings.batch_size, shuffle=True)
    test_loader = DataLoader(Keywords(160, settings, 2), batch_size=80)
    model = Spotter(settings)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.lr, momentum=0.9)
    scheduler = CosineAnnealingLR(optimizer, T_max=settings.epochs * len(train_loader), eta_min=0.01)
    model, optimizer, train_loader, test_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, test_loader, scheduler
    )
    criterion = nn.CrossEntropyLoss()

    for epoch in range(settings.epochs):
        model.train()
        losses = []
        for frames, words in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(frames), words)
            accelerator.clip_grad_norm_(model.parameters(), settings.max_norm)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        accuracy = evaluate(accelerator, model, test_loader)
        accelerator.print(f"epoch {epoch}: loss {np.mean(losses):.4f}, test accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
