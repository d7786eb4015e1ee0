"""Wake-word spotting on voiced frames: energy gate, GRU, mean over the frames that are there. Uses Accelerate."""

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORDS = ["go", "stop", "left", "right", "up", "down"]
BANDS = 16
GATE = 0.35


def synth_clip(label, rng):
    """Frames of band energies: noise, the word somewhere in the middle, noise. Some recordings never caught the speaker."""
    frames = int(rng.integers(20, 36))
    clip = np.abs(rng.normal(0, 0.05, size=(frames, BANDS)))
    if rng.random() < 0.995:
        start, length = int(rng.integers(2, 6)), int(rng.integers(8, 13))
        track = (label * 2.3 + np.linspace(0, 4 if label % 2 else -4, length)) % BANDS
        for i, centre in enumerate(track):
            clip[start + i] += np.exp(-((np.arange(BANDS) - centre) ** 2) / 3)
    return clip


class WakeWords(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.items = []
        for _ in range(count):
            label = int(rng.integers(len(WORDS)))
            clip = synth_clip(label, rng)
            voiced = clip.max(axis=1) > GATE
            features = (clip[voiced] - 0.25) / 0.3
            self.items.append((torch.tensor(features, dtype=torch.float32), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def pad_frames(batch):
    lengths = torch.tensor([len(f) for f, _ in batch])
    frames = torch.zeros(len(batch), int(lengths.max()), BANDS)
    for row, (f, _) in zip(frames, batch, strict=True):
        row[: len(f)] = f
    return frames, lengths, torch.tensor([y for _, y in batch])


class Spotter(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.GRU(BANDS, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(hidden, len(WORDS))

    def forward(self, frames, lengths):
        states, _ = self.rnn(frames)
        there = torch.arange(frames.shape[1], device=frames.device)[None] < lengths[:, None]
        pooled = (states * there.unsqueeze(-1)).sum(1) / there.sum(1, keepdim=True)
        return self.out(self.drop(pooled))


def main():
    set_seed(77)
    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(WakeWords(900, seed=1), batch_size=30, shuffle=True, collate_fn=pad_frames)
    dev_loader = DataLoader(WakeWords(150, seed=4), batch_size=50, collate_fn=pad_frames)
    model = Spotter()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    model, optimizer, train_loader, dev_loader = accelerator.prepare(model, optimizer, train_loader, dev_loader)
    loss_fn = nn.CrossEntropyLoss()

    for epoch in range(4):
        model.train()
        total = 0.0
        for frames, lengths, labels in train_loader:
            loss = loss_fn(model(frames, lengths), labels)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        model.eval()
        right = count = 0
        for frames, lengths, labels in dev_loader:
            with torch.no_grad():
                guess = model(frames, lengths).argmax(-1)
            guess, labels = accelerator.gather_for_metrics((guess, labels))
            right += int((guess == labels).sum())
            count += len(labels)
        accelerator.print(f"epoch {epoch}: loss {total / len(train_loader):.4f} dev accuracy {right / count:.3f}")


if __name__ == "__main__":
    main()
