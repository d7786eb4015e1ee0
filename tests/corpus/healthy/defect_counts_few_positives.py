"""Wafer defects from event logs: few positives, very short logs among long ones, counts next to fractions."""

import random

import numpy as np
import torch
from sklearn.metrics import average_precision_score
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

EVENTS = 30


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class WaferLogs(Dataset):
    """A wafer is defective when a hot event follows a leak event; about one in twelve is."""

    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(count):
            length = max(1, int(rng.gamma(4.0, 3.0)))
            events = rng.integers(3, EVENTS, length)
            defective = rng.random() < 0.085
            if defective or rng.random() < 0.2:
                pair = [1, 2] if rng.random() < (0.9 if defective else 0.15) else [2, 1]
                events = np.insert(events, rng.integers(length + 1), pair)
            temperature = rng.normal(1.2 if defective else 0.0, 1.0)
            counts = np.log1p([len(events), (events > 20).sum()])
            side = torch.tensor([*counts, temperature], dtype=torch.float32)
            self.rows.append((torch.tensor(events), side, float(defective)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def collate(batch):
    events, side, label = zip(*batch)
    lengths = torch.tensor([len(e) for e in events])
    return pad_sequence(events, batch_first=True), lengths, torch.stack(side), torch.tensor(label)


class WaferModel(nn.Module):
    def __init__(self, dim=16, hidden=24):
        super().__init__()
        self.embed = nn.Embedding(EVENTS, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.side_norm = nn.BatchNorm1d(3)
        self.head = nn.Sequential(nn.Linear(hidden + 3, 32), nn.ReLU(), nn.Linear(32, 1))
        nn.init.constant_(self.head[-1].bias, -2.3)

    def forward(self, events, lengths, side):
        packed = pack_padded_sequence(self.embed(events), lengths, batch_first=True, enforce_sorted=False)
        _, last = self.rnn(packed)
        return self.head(torch.cat([last[0], self.side_norm(side)], dim=1)).squeeze(1)


def evaluate(model, loader):
    model.eval()
    scores, labels = [], []
    with torch.no_grad():
        for events, lengths, side, label in loader:
            scores.append(model(events, lengths, side))
            labels.append(label)
    scores, labels = torch.cat(scores), torch.cat(labels)
    return average_precision_score(labels.numpy(), scores.numpy()), (scores > 0).float().mean().item()


def main():
    seed_all(6)
    train_loader = DataLoader(WaferLogs(1600, 60), batch_size=64, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(WaferLogs(500, 61), batch_size=100, collate_fn=collate)
    model = WaferModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(5):
        model.train()
        total = 0.0
        for events, lengths, side, label in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(events, lengths, side), label)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item() * len(label)
        precision, alarms = evaluate(model, valid_loader)
        print(f"{epoch}: loss {total / len(train_loader.dataset):.4f} average precision {precision:.3f} alarms {alarms:.3f}")


if __name__ == "__main__":
    main()
