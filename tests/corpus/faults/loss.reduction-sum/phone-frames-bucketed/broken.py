"""Frame-wise phone recogniser. Utterances are bucketed by length, every bucket holds about the same number of frames."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence


@dataclass
class Settings:
    phones: int = 10
    coefficients: int = 13
    width: int = 64
    frames_per_batch: int = 600
    steps: int = 70
    lr: float = 0.1
    momentum: float = 0.9
    max_norm: float = 1.0
    seed: int = 31


@dataclass
class Corpus:
    settings: Settings
    seed: int
    size: int
    utterances: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        means = np.random.default_rng(7).normal(size=(self.settings.phones, self.settings.coefficients))
        for _ in range(self.size):
            phones = np.repeat(rng.integers(0, self.settings.phones, rng.integers(4, 16)), 4)
            frames = means[phones] + rng.normal(size=(len(phones), self.settings.coefficients))
            frames = (frames - frames.mean(0)) / frames.std(0)
            self.utterances.append((torch.tensor(frames, dtype=torch.float32), torch.tensor(phones)))

    def buckets(self) -> list[tuple[Tensor, Tensor]]:
        by_length = sorted(self.utterances, key=lambda u: len(u[1]) + random.random())
        groups: list[list[tuple[Tensor, Tensor]]] = [[]]
        frames = 0
        for utterance in by_length:
            if frames + len(utterance[1]) > self.settings.frames_per_batch:
                groups.append([])
                frames = 0
            groups[-1].append(utterance)
            frames += len(utterance[1])
        random.shuffle(groups)
        return [
            (
                pad_sequence([u[0] for u in g], batch_first=True),
                pad_sequence([u[1] for u in g], batch_first=True, padding_value=-100),
            )
            for g in groups
        ]


class PhoneNet(nn.Module):
    def __init__(self, s: Settings) -> None:
        super().__init__()
        self.conv = nn.Conv1d(s.coefficients, s.width, kernel_size=7, padding=3)
        self.norm = nn.LayerNorm(s.width)
        self.hidden = nn.Linear(s.width, s.width)
        self.out = nn.Linear(s.width, s.phones)

    def forward(self, frames: Tensor) -> Tensor:
        h = self.norm(self.conv(frames.mT).mT)
        return self.out(torch.relu(self.hidden(torch.relu(h))))


def train(s: Settings) -> None:
    random.seed(s.seed)
    np.random.seed(s.seed)
    torch.manual_seed(s.seed)
    corpus, held_out = Corpus(s, 1, 300), Corpus(s, 2, 40)
    net = PhoneNet(s)
    optimizer = torch.optim.SGD(net.parameters(), lr=s.lr, momentum=s.momentum)
    criterion = nn.CrossEntropyLoss(ignore_index=-100, reduction="sum")

    step = 0
    while step < s.steps:
        for frames, phones in corpus.buckets():
            net.train()
            loss = criterion(net(frames).flatten(0, 1), phones.flatten())
            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm_(net.parameters(), s.max_norm)
            optimizer.step()
            if step % 10 == 0:
                print(f"step {step:3d} loss {loss.item():.3f} frame error {frame_error(net, held_out):.3f}")
            step += 1
            if step == s.steps:
                break


@torch.no_grad()
def frame_error(net: PhoneNet, corpus: Corpus) -> float:
    net.eval()
    wrong = total = 0
    for frames, phones in corpus.utterances:
        wrong += (net(frames[None]).argmax(-1)[0] != phones).sum().item()
        total += len(phones)
    return wrong / total


if __name__ == "__main__":
    train(Settings())
