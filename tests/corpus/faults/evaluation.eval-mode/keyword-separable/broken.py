"""Keyword spotting on synthetic filterbank features with a depthwise-separable conv net."""

import argparse
import logging
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("kws")


def filterbanks(count, generator, n_mels=20, frames=40, n_words=6):
    """Each word is a fixed trajectory over mel bins, stretched and shifted a little."""
    words = torch.randint(n_words, (count,), generator=generator)
    mel = torch.arange(n_mels).view(1, n_mels, 1)
    time = torch.linspace(0, 1, frames).view(1, 1, frames)
    start = 3 + 2.2 * words.view(-1, 1, 1)
    bend = torch.where(words % 2 == 0, 4.0, -4.0).view(-1, 1, 1)
    shift = 0.15 * torch.randn(count, 1, 1, generator=generator)
    ridge = start + bend * torch.sin(np.pi * (time + shift))
    feats = torch.exp(-0.5 * ((mel - ridge) / 1.3) ** 2) + 0.35 * torch.randn(count, n_mels, frames, generator=generator)
    return feats, words


class SeparableBlock(nn.Module):
    def __init__(self, cin, cout, kernel, stride=1):
        super().__init__()
        self.depthwise = nn.Conv1d(cin, cin, kernel, stride=stride, padding=kernel // 2, groups=cin, bias=False)
        self.pointwise = nn.Conv1d(cin, cout, 1, bias=False)
        self.bn = nn.BatchNorm1d(cout)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.bn(self.pointwise(self.depthwise(x))))


class KeywordNet(nn.Module):
    def __init__(self, n_mels=20, n_words=6, width=32, dropout=0.3):
        super().__init__()
        self.features = nn.Sequential(
            SeparableBlock(n_mels, width, 5, stride=2),
            SeparableBlock(width, width, 5),
            SeparableBlock(width, width, 5, stride=2),
        )
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, n_words)

    def forward(self, x):
        return self.classifier(self.dropout(self.pool(self.features(x)).squeeze(-1)))


def run_epoch(model, loader, criterion, optimizer, scheduler):
    model.train()
    total, hits, seen = 0.0, 0, 0
    for feats, words in loader:
        optimizer.zero_grad()
        logits = model(feats)
        loss = criterion(logits, words)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(words)
        hits += (logits.argmax(1) == words).sum().item()
        seen += len(words)
    return total / seen, hits / seen


@torch.inference_mode()
def validate(model, loader, criterion):
    model.eval
    total, hits, seen = 0.0, 0, 0
    for feats, words in loader:
        logits = model(feats)
        total += criterion(logits, words).item() * len(words)
        hits += (logits.argmax(1) == words).sum().item()
        seen += len(words)
    return total / seen, hits / seen


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch_size", type=int, default=40)
    parser.add_argument("--max_lr", type=float, default=1e-2)
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s")

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(42)
    train = TensorDataset(*filterbanks(800, generator))
    valid = TensorDataset(*filterbanks(240, generator))
    train_loader = DataLoader(train, args.batch_size, shuffle=True)
    valid_loader = DataLoader(valid, args.batch_size)

    model = KeywordNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.max_lr, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.max_lr * 5, total_steps=args.epochs * len(train_loader)
    )
    for epoch in range(args.epochs):
        train_loss, train_acc = run_epoch(model, train_loader, criterion, optimizer, scheduler)
        val_loss, val_acc = validate(model, valid_loader, criterion)
        log.info("%d train %.3f/%.3f valid %.3f/%.3f", epoch, train_loss, train_acc, val_loss, val_acc)


if __name__ == "__main__":
    main()
