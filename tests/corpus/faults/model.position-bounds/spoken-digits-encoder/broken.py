"""Tags spoken digits in feature sequences; utterances of the validation speakers may run longer than the training ones."""

import math
import random
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn


@dataclass
class Settings:
    features: int = 12
    d_model: int = 32
    heads: int = 4
    layers: int = 2
    classes: int = 5
    max_frames: int = 48
    batch: int = 20
    epochs: int = 3
    lr: float = 2e-3
    seed: int = 13
    train_frames: tuple = field(default=(24, 48))
    valid_frames: tuple = field(default=(24, 64))


def synthesize(settings, count, frame_range, rng, patterns):
    """A class adds its spectral pattern to a third of the frames."""
    clips, labels = [], []
    for _ in range(count):
        frames = int(rng.integers(frame_range[0], frame_range[1] + 1))
        label = int(rng.integers(settings.classes))
        clip = rng.normal(size=(frames, settings.features))
        start = int(rng.integers(0, frames - frames // 3))
        clip[start : start + frames // 3] += patterns[label]
        clips.append(torch.tensor(clip, dtype=torch.float32))
        labels.append(label)
    return clips, torch.tensor(labels)


class SinusoidalPositions(nn.Module):
    def __init__(self, d_model, max_len, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        steps = torch.arange(max_len, dtype=torch.float32)[:, None]
        rates = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(steps * rates)
        table[:, 1::2] = torch.cos(steps * rates)
        self.register_buffer("table", table[None])

    def forward(self, x):
        return self.dropout(x + self.table[:, : x.size(1), :])


class SpeechTagger(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.project = nn.Linear(s.features, s.d_model)
        self.positions = SinusoidalPositions(s.d_model, s.max_frames, 0.1)
        layer = nn.TransformerEncoderLayer(s.d_model, s.heads, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, s.layers, norm=nn.LayerNorm(s.d_model), enable_nested_tensor=False)
        self.output = nn.Linear(s.d_model, s.classes)

    def forward(self, frames, lengths):
        silent = torch.arange(frames.size(1))[None, :] >= lengths[:, None]
        h = self.encoder(self.positions(self.project(frames)), src_key_padding_mask=silent)
        h = h.masked_fill(silent[..., None], 0.0).sum(1) / lengths[:, None]
        return self.output(h)


class Experiment:
    def __init__(self, settings):
        self.s = settings
        random.seed(settings.seed)
        np.random.seed(settings.seed)
        torch.manual_seed(settings.seed)
        rng = np.random.default_rng(settings.seed)
        patterns = rng.normal(size=(settings.classes, settings.features))
        self.train_data = synthesize(settings, 600, settings.train_frames, rng, patterns)
        self.valid_data = synthesize(settings, 120, settings.valid_frames, rng, patterns)
        self.model = SpeechTagger(settings)
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.lr)

    def batches(self, data, shuffle):
        clips, labels = data
        order = np.random.permutation(len(clips)) if shuffle else np.arange(len(clips))
        for i in range(0, len(order), self.s.batch):
            index = order[i : i + self.s.batch]
            chosen = [clips[j] for j in index]
            lengths = torch.tensor([len(c) for c in chosen])
            yield nn.utils.rnn.pad_sequence(chosen, batch_first=True), lengths, labels[index]

    def train_epoch(self):
        self.model.train()
        total, count = 0.0, 0
        for frames, lengths, labels in self.batches(self.train_data, True):
            self.optimizer.zero_grad()
            loss = self.loss(self.model(frames, lengths), labels)
            loss.backward()
            self.optimizer.step()
            total, count = total + loss.item(), count + 1
        return total / count

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        right = sum((self.model(f, n).argmax(1) == y).sum().item() for f, n, y in self.batches(self.valid_data, False))
        return right / len(self.valid_data[1])

    def run(self):
        for epoch in range(self.s.epochs):
            print(f"epoch {epoch} loss {self.train_epoch():.4f}", end=" ")
            print(f"accuracy {self.validate():.3f}")


if __name__ == "__main__":
    Experiment(Settings()).run()
