"""Headline tagging under torchrun: every process tags its share, validation logits are gathered on all of them."""

import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

PAD, VOCAB, TAGS, MAX_LEN = 0, 60, 4, 20


class Headlines(Dataset):
    """A word's tag depends on the word and on the one before it."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        table = np.random.default_rng(1).integers(0, TAGS, size=(VOCAB, 2))
        self.rows = []
        for _ in range(count):
            words = rng.integers(1, VOCAB, size=int(rng.integers(5, MAX_LEN + 1)))
            before = np.concatenate([[0], words[:-1]]) % 2
            self.rows.append((words.tolist(), table[words, before].tolist()))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    titles, tags = zip(*rows, strict=True)
    pad_to = max(len(t) for t in titles)
    x = torch.full((len(rows), pad_to), PAD)
    y = torch.full((len(rows), pad_to), -100)
    for i, (words, labels) in enumerate(zip(titles, tags, strict=True)):
        x[i, : len(words)] = torch.tensor(words)
        y[i, : len(labels)] = torch.tensor(labels)
    return x, y


class Tagger(nn.Module):
    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.conv = nn.Conv1d(dim, hidden, 3, padding=1)
        self.tag = nn.Linear(hidden, TAGS)

    def forward(self, x):
        h = torch.relu(self.conv(self.words(x).transpose(1, 2)))
        return self.tag(h.transpose(1, 2))


@torch.no_grad()
def validate(model, loader):
    model.eval()
    right = seen = 0
    for x, y in loader:
        guess = model(x).argmax(-1)
        guesses = [torch.empty_like(guess) for _ in range(dist.get_world_size())]
        targets = [torch.empty_like(y) for _ in range(dist.get_world_size())]
        dist.all_gather(guesses, guess)
        dist.all_gather(targets, y)
        guess, y = torch.cat(guesses), torch.cat(targets)
        right += int(((guess == y) & (y != -100)).sum())
        seen += int((y != -100).sum())
    model.train()
    return right / seen


def main():
    dist.init_process_group("gloo")
    random.seed(9)
    np.random.seed(9)
    torch.manual_seed(9)
    train, valid = Headlines(800, seed=2), Headlines(160, seed=3)
    sampler = DistributedSampler(train, shuffle=True, seed=9)
    train_loader = DataLoader(train, batch_size=20, sampler=sampler, collate_fn=collate)
    valid_loader = DataLoader(valid, batch_size=4, sampler=DistributedSampler(valid, shuffle=False), collate_fn=collate)

    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x).transpose(1, 2), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        accuracy = validate(model, valid_loader)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {total / len(train_loader):.3f}, validation accuracy {accuracy:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
