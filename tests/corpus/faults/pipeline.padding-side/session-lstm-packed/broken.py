"""Predicts from a click session whether the visitor buys. Sessions are packed for an LSTM."""

import random

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, Dataset

PAD_ID = 0
EVENTS = ["view", "search", "filter", "cart", "remove", "review", "share", "help", "login", "scroll"]
EVENT_ID = {name: i + 1 for i, name in enumerate(EVENTS)}


class Sessions(Dataset):
    """A session ends in a purchase when its last cart event is not undone by a later removal."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.sessions = []
        while len(self.sessions) < n:
            events = [rng.choice(EVENTS) for _ in range(rng.randint(4, 30))]
            in_cart = False
            for event in events:
                if event == "cart":
                    in_cart = True
                elif event == "remove":
                    in_cart = False
            if in_cart == (len(self.sessions) % 2 == 0):
                self.sessions.append(([EVENT_ID[e] for e in events], int(in_cart)))

    def __len__(self):
        return len(self.sessions)

    def __getitem__(self, index):
        return self.sessions[index]


def collate_sessions(batch):
    longest = max(len(ids) for ids, _ in batch)
    rows, lengths, targets = [], [], []
    for ids, bought in batch:
        filler = [PAD_ID] * (longest - len(ids))
        rows.append(filler + ids)
        lengths.append(len(ids))
        targets.append(float(bought))
    return torch.tensor(rows), torch.tensor(lengths), torch.tensor(targets)


class PurchaseModel(nn.Module):
    def __init__(self, embed_dim=24, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(len(EVENTS) + 1, embed_dim, padding_idx=PAD_ID)
        self.lstm = nn.LSTM(embed_dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.out(h[-1]).squeeze(1)


def epoch_pass(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total_loss = total_right = total = 0
    with torch.set_grad_enabled(optimizer is not None):
        for ids, lengths, bought in loader:
            logits = model(ids, lengths)
            loss = criterion(logits, bought)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
            total_loss += loss.item() * len(bought)
            total_right += ((logits > 0) == (bought > 0.5)).sum().item()
            total += len(bought)
    return total_loss / total, total_right / total


def main():
    random.seed(6)
    np.random.seed(6)
    torch.manual_seed(6)
    train_loader = DataLoader(Sessions(1200, 100), batch_size=24, shuffle=True, collate_fn=collate_sessions)
    test_loader = DataLoader(Sessions(240, 200), batch_size=60, collate_fn=collate_sessions)
    model = PurchaseModel()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    for epoch in range(1, 6):
        train_loss, train_acc = epoch_pass(model, train_loader, criterion, optimizer)
        test_loss, test_acc = epoch_pass(model, test_loader, criterion)
        print(f"{epoch:2d} train {train_loss:.3f}/{train_acc:.3f} test {test_loss:.3f}/{test_acc:.3f}")


if __name__ == "__main__":
    main()
