"""CTC digit-string recogniser, trained in micro-batches."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BLANK = 0


@dataclass
class TrainConfig:
    steps: int = 70
    micro_batch: int = 8
    accumulate: int = 4
    lr: float = 4e-3
    hidden: int = 32
    mel: int = 12
    seed: int = 2


class Utterances(Dataset):
    def __init__(self, n, cfg):
        book = np.random.default_rng(99).normal(size=(6, cfg.mel))
        rng = np.random.default_rng(cfg.seed)
        self.items = []
        for _ in range(n):
            digits = rng.integers(1, 6, rng.integers(2, 5))
            frames = []
            for d in digits:
                frames += [book[d]] * int(rng.integers(2, 5)) + [book[0]] * int(rng.integers(1, 3))
            x = (np.array(frames) + 0.3 * rng.normal(size=(len(frames), cfg.mel))) / math.sqrt(1.09)
            self.items.append((torch.tensor(x, dtype=torch.float32), torch.tensor(digits)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    xs, ys = zip(*items, strict=False)
    x_len = torch.tensor([len(x) for x in xs])
    y_len = torch.tensor([len(y) for y in ys])
    return nn.utils.rnn.pad_sequence(xs, batch_first=True), x_len, torch.cat(ys), y_len


class Recogniser(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.rnn = nn.GRU(cfg.mel, cfg.hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * cfg.hidden, 6)

    def forward(self, x, x_len):
        packed = nn.utils.rnn.pack_padded_sequence(x, x_len, batch_first=True, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(h).log_softmax(-1)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = Recogniser(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
        self.loader = DataLoader(Utterances(512, cfg), cfg.micro_batch, shuffle=True, drop_last=True, collate_fn=collate)

    def micro_batches(self):
        while True:
            yield from self.loader

    def micro_loss(self, x, x_len, y, y_len):
        log_probs = self.model(x, x_len).transpose(0, 1)
        return self.ctc(log_probs, y, x_len, y_len)

    def fit(self):
        self.model.train()
        stream = self.micro_batches()
        for step in range(self.cfg.steps):
            total = 0.0
            for _ in range(self.cfg.accumulate):
                self.optimizer.zero_grad()
                loss = self.micro_loss(*next(stream)) / self.cfg.accumulate
                loss.backward()
                total += loss.item()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            if step % 10 == 0 or step == self.cfg.steps - 1:
                print(f"step {step:3d}  ctc {total:.4f}")


if __name__ == "__main__":
    config = TrainConfig()
    torch.manual_seed(config.seed)
    np.random.seed(config.seed)
    Trainer(config).fit()
