"""Classify court filings of very uneven length with a GRU over word ids."""
import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, Dataset

KINDS = 4
VOCAB = 120


class Filings(Dataset):
    """Most filings are notices of a few words, some are long briefs."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.docs, self.kinds = [], rng.integers(0, KINDS, n)
        for kind in self.kinds:
            length = int(np.clip(rng.lognormal(2.2, 1.0), 4, 160))
            words = rng.integers(1 + KINDS * 8, VOCAB, length)
            marked = rng.random(length) < 0.4
            marked[:2] = True
            words[marked] = 1 + kind * 8 + rng.integers(0, 8, marked.sum())
            self.docs.append(torch.from_numpy(words))

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        return self.docs[i], int(self.kinds[i])


class BucketSampler:
    """Shuffles, then sorts pools of twelve batches by length, and shuffles the batches."""

    def __init__(self, lengths, batch_size, seed):
        self.lengths, self.batch_size, self.rng = lengths, batch_size, random.Random(seed)

    def __len__(self):
        return len(self.lengths) // self.batch_size

    def __iter__(self):
        order = list(range(len(self.lengths)))
        self.rng.shuffle(order)
        pool, batches = 12 * self.batch_size, []
        for start in range(0, len(order), pool):
            chunk = sorted(order[start : start + pool], key=self.lengths.__getitem__)
            batches += [chunk[i : i + self.batch_size] for i in range(0, len(chunk), self.batch_size)]
        self.rng.shuffle(batches)
        return iter(batches)


def collate(samples):
    docs, kinds = zip(*samples)
    lengths = torch.tensor([len(d) for d in docs])
    padded = torch.zeros(len(docs), int(lengths.max()), dtype=torch.long)
    for row, doc in zip(padded, docs):
        row[: len(doc)] = doc
    return padded, lengths, torch.tensor(kinds)


class FilingGRU(nn.Module):
    def __init__(self, dim=32, hidden=40):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(hidden, KINDS)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.emb(ids), lengths, batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return self.fc(self.drop(h[-1]))


def main():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    train, val = Filings(960, 1), Filings(160, 2)
    lengths = [len(d) for d in train.docs]
    train_loader = DataLoader(train, batch_sampler=BucketSampler(lengths, 32, seed=0), collate_fn=collate)
    val_loader = DataLoader(val, batch_size=32, collate_fn=collate)
    model = FilingGRU()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(4):
        model.train()
        total = 0.0
        for ids, n, kinds in train_loader:
            loss = nn.functional.cross_entropy(model(ids, n), kinds)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(kinds)
        model.eval()
        hits = 0
        with torch.no_grad():
            for ids, n, kinds in val_loader:
                hits += (model(ids, n).argmax(1) == kinds).sum().item()
        print(f"epoch {epoch}: loss {total / len(train):.4f}, val accuracy {hits / len(val):.3f}")


if __name__ == "__main__":
    main()
