# Part-of-speech tagger: bidirectional LSTM over packed sentences, tags padded to the longest sentence.
import random
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

TAGS = ["<pad>", "noun", "verb", "adj", "det"]


@dataclass
class Settings:
    words: int = 80
    epochs: int = 3
    batch: int = 24
    lr: float = 5e-3
    hidden: int = 32
    seed: int = 14
    tags: list = field(default_factory=lambda: TAGS)


def sentence(s):
    n = random.randint(3, 16)
    words = [random.randint(1, s.words - 1) for _ in range(n)]
    tags = []
    for i, w in enumerate(words):
        tag = 1 + w % 4
        if tag == 2 and i and tags[-1] == 4:
            tag = 1
        tags.append(tag)
    return torch.tensor(words), torch.tensor(tags)


def merge(rows):
    words, tags = map(list, zip(*rows))
    sizes = torch.tensor([len(w) for w in words])
    return pad_sequence(words, True), pad_sequence(tags, True), sizes


class Tagger(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.emb = nn.Embedding(s.words, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, s.hidden, batch_first=True, bidirectional=True)
        self.proj = nn.Linear(2 * s.hidden, len(s.tags))

    def forward(self, words, sizes):
        packed = pack_padded_sequence(self.emb(words), sizes, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.proj(out)


def main(s):
    random.seed(s.seed)
    np.random.seed(s.seed)
    torch.manual_seed(s.seed)
    train = DataLoader([sentence(s) for _ in range(600)], s.batch, shuffle=True, collate_fn=merge)
    dev = DataLoader([sentence(s) for _ in range(100)], 50, collate_fn=merge)
    net = Tagger(s)
    opt = torch.optim.Adam(net.parameters(), lr=s.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(s.epochs):
        net.train()
        for words, tags, sizes in train:
            loss = criterion(net(words, sizes).permute(0, 2, 1), tags)
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        good = total = 0
        with torch.no_grad():
            for words, tags, sizes in dev:
                real = tags != 0
                good += ((net(words, sizes).argmax(-1) == tags) & real).sum().item()
                total += real.sum().item()
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {good / total:.3f}")


main(Settings())
