"""Phone classification from filterbanks, effective batch 60 by accumulating 5 micro-batches."""

import dataclasses

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Options:
    epochs: int = 6
    batch: int = 12
    accumulate: int = 5
    lr: float = 3e-3
    seed: int = 44
    train_size: int = 12 * 33
    valid_size: int = 120


class Frames(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        book = np.random.default_rng(5).normal(size=(7, 11, 8))
        self.y = rng.integers(0, 7, n)
        x = book[self.y] + 1.2 * rng.normal(size=(n, 11, 8))
        self.x = (x / np.sqrt(1 + 1.44)).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class PhoneNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 24, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(48, 7)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.fc(self.drop(h.mean(1)))


class Learner:
    def __init__(self, opt):
        self.opt = opt
        self.net = PhoneNet()
        self.optim = torch.optim.Adam(self.net.parameters(), lr=opt.lr)
        self.train_dl = DataLoader(Frames(opt.train_size, 1), opt.batch, shuffle=True)
        self.valid_dl = DataLoader(Frames(opt.valid_size, 2), 60)

    def apply_gradients(self):
        self.optim.step()
        self.optim.zero_grad()

    def train_epoch(self):
        self.net.train()
        self.optim.zero_grad()
        pending, total = 0, 0.0
        for x, y in self.train_dl:
            loss = nn.functional.cross_entropy(self.net(x), y)
            (loss / self.opt.accumulate).backward()
            pending += 1
            total += loss.item()
            if pending == self.opt.accumulate:
                self.apply_gradients()
                pending = 0
        if pending:
            self.apply_gradients()
        return total / len(self.train_dl)

    @torch.no_grad()
    def accuracy(self):
        self.net.eval()
        return np.mean([(self.net(x).argmax(1) == y).float().mean().item() for x, y in self.valid_dl])

    def fit(self):
        for epoch in range(self.opt.epochs):
            print(f"epoch {epoch} loss {self.train_epoch():.4f} acc {self.accuracy():.3f}")


if __name__ == "__main__":
    options = Options()
    torch.manual_seed(options.seed)
    np.random.seed(options.seed)
    Learner(options).fit()
