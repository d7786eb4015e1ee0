"""Duplicate detection on complaint pairs: log-probabilities, summed losses over variable windows, atomic checkpoints."""
import os
import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

RELATIONS = ("same", "related", "different")
VOCAB, TOPICS, WINDOW = 60, 6, 3


class Pairs(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(n):
            relation = int(rng.integers(0, 3))
            a = int(rng.integers(0, TOPICS))
            b = a if relation == 0 else (a ^ 1 if relation == 1 else (a + 2 + 2 * int(rng.integers(0, 2))) % TOPICS)
            self.rows.append((self.text(rng, a), self.text(rng, b), relation))

    @staticmethod
    def text(rng, topic):
        length = int(np.clip(rng.lognormal(2.1, 0.45), 4, 24))
        words = rng.integers(1 + TOPICS * 4, VOCAB, length)
        words[rng.random(length) < 0.5] = 1 + topic * 4 + rng.integers(0, 4)
        words[0] = 1 + topic * 4 + rng.integers(0, 4)
        return torch.from_numpy(words)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    left, right, label = zip(*rows)
    lengths = torch.tensor([[len(a), len(b)] for a, b in zip(left, right)])
    return pad_sequence(left, True, 0), pad_sequence(right, True, 0), lengths, torch.tensor(label)


class PairNet(nn.Module):
    def __init__(self, dim=32, hidden=32):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(4 * hidden, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, len(RELATIONS)))

    def embed(self, ids, lengths):
        packed = pack_padded_sequence(self.words(ids), lengths, batch_first=True, enforce_sorted=False)
        return self.gru(packed)[1][-1]

    def forward(self, left, right, lengths):
        a, b = self.embed(left, lengths[:, 0]), self.embed(right, lengths[:, 1])
        log_probs = torch.log_softmax(self.out(torch.cat([a, b, (a - b).abs(), a * b], 1)), dim=1)
        return log_probs if self.training else log_probs.exp()


def save_atomically(state, path):
    torch.save(state, path + ".tmp")
    os.replace(path + ".tmp", path)


@torch.no_grad()
def evaluate(model, loader):
    """Macro F1 over the whole split, and the mean accuracy of its equally large batches."""
    model.eval()
    confusion = torch.zeros(3, 3)
    accuracies = []
    for left, right, lengths, label in loader:
        guess = model(left, right, lengths).argmax(1)
        confusion += torch.bincount(label * 3 + guess, minlength=9).view(3, 3)
        accuracies.append((guess == label).float().mean().item())
    hits = confusion.diag()
    f1 = 2 * hits / (confusion.sum(0) + confusion.sum(1)).clamp(min=1)
    return f1.mean().item(), sum(accuracies) / len(accuracies)


def main():
    random.seed(6)
    np.random.seed(6)
    torch.manual_seed(6)
    train, val = Pairs(1100, 1), Pairs(240, 2)
    loader = DataLoader(train, batch_size=20, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(val, batch_size=48, collate_fn=collate)
    model = PairNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    best = 0.0
    for epoch in range(7):
        model.train()
        total, batches = 0.0, list(loader)
        for start in range(0, len(batches), WINDOW):
            window = batches[start : start + WINDOW]
            num_pairs = sum(len(label) for *_, label in window)
            for left, right, lengths, label in window:
                loss = nn.functional.nll_loss(model(left, right, lengths), label, reduction="sum")
                (loss / num_pairs).backward()
                total += loss.item()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            optimizer.zero_grad()
        f1, accuracy = evaluate(model, val_loader)
        print(f"epoch {epoch}: loss {total / len(train):.4f} macro F1 {f1:.3f} accuracy {accuracy:.3f}")
        if f1 > best:
            best = f1
            save_atomically({"model": model.state_dict(), "epoch": epoch}, "best.pt")
    model.load_state_dict(torch.load("best.pt")["model"])
    print("reloaded:", evaluate(model, val_loader))


if __name__ == "__main__":
    main()
