"""Tag the tokens of short sentences; the card only takes eight sentences at a time, so gradients are gathered over windows."""

import itertools
import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD = 0
IGNORE = -100
WORDS, TAGS = 60, 5


def windows(iterable, size):
    it = iter(iterable)
    return zip(*itertools.repeat(it, size))


def write_sentences(count, rng):
    """A word's tag depends on the word and on the one before it."""
    rule = np.random.default_rng(99).integers(0, TAGS, (WORDS, 2))
    out = []
    for _ in range(count):
        words = rng.integers(1, WORDS, rng.integers(6, 15))
        before = np.concatenate([[1], words[:-1]])
        out.append((torch.from_numpy(words), torch.from_numpy(rule[words, before % 2])))
    return out


def collate(batch):
    words, tags = zip(*batch)
    return pad_sequence(words, batch_first=True, padding_value=PAD), pad_sequence(tags, batch_first=True, padding_value=IGNORE)


class Tagger(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.words = nn.Embedding(WORDS, dim, padding_idx=PAD)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.tags = nn.Linear(dim, TAGS)

    def forward(self, ids):
        states, _ = self.lstm(self.words(ids))
        return self.tags(self.drop(states))


def tag_loss(model, ids, tags):
    return nn.functional.cross_entropy(model(ids).transpose(1, 2), tags, ignore_index=IGNORE)


def run_epoch(model, loader, optimizer, window_size):
    model.train()
    losses = []
    for window in windows(loader, window_size):
        optimizer.zero_grad()
        for ids, tags in window:
            loss = tag_loss(model, ids, tags) / len(window)
            loss.backward()
            losses.append(loss.item() * len(window))
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return float(np.mean(losses))


def main():
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)
    rng = np.random.default_rng(4)
    train = DataLoader(write_sentences(430, rng), batch_size=8, shuffle=True, collate_fn=collate)
    valid = DataLoader(write_sentences(96, rng), batch_size=32, collate_fn=collate)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    for epoch in range(5):
        train_loss = run_epoch(model, train, optimizer, window_size=4)
        model.eval()
        hits = total = 0
        with torch.no_grad():
            for ids, tags in valid:
                known = tags != IGNORE
                hits += (model(ids).argmax(-1) == tags)[known].sum().item()
                total += known.sum().item()
        print(f"epoch {epoch} loss {train_loss:.4f} tag accuracy {hits / total:.3f}")


if __name__ == "__main__":
    main()
