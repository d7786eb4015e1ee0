"""Predict a patient's heart rate one hour ahead from hourly vitals. Stays have very different lengths."""

import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Stays(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.stays = []
        for _ in range(n):
            hours = int(rng.integers(6, 49))
            drift = rng.normal(scale=0.1)
            state = rng.normal(size=3) * 0.6
            rows, nxt = [], []
            for _ in range(hours):
                rows.append(np.append(state, drift * 10) + 0.05 * rng.normal(size=4))
                state = 0.7 * state + 0.3 * np.roll(state, 1) * np.array([1, -1, 1]) + drift + 0.1 * rng.normal(size=3)
                nxt.append(1.2 + state[0])
            self.stays.append((torch.tensor(np.array(rows), dtype=torch.float32), torch.tensor(nxt, dtype=torch.float32)))

    def __len__(self):
        return len(self.stays)

    def __getitem__(self, i):
        return self.stays[i]


def collate(batch):
    vitals = pad_sequence([v for v, _ in batch], batch_first=True)
    target = pad_sequence([t for _, t in batch], batch_first=True)
    hours = torch.tensor([len(t) for _, t in batch])
    return vitals, target, hours


class HeartRateModel(nn.Module):
    def __init__(self, features=4, width=48):
        super().__init__()
        self.lift = nn.Linear(features, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.readout = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, vitals):
        h, _ = self.lstm(torch.tanh(self.lift(vitals)))
        return self.readout(h).squeeze(-1)


def valid_hours(hours, longest):
    return torch.arange(longest) < hours[:, None]


def validate(model, loader):
    model.eval()
    error = count = 0.0
    with torch.no_grad():
        for vitals, target, hours in loader:
            keep = valid_hours(hours, target.shape[1])
            error += (model(vitals) - target)[keep].abs().sum().item()
            count += keep.sum().item()
    return error / count


def main(seed=12, epochs=5):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    train = DataLoader(Stays(480, 1), batch_size=24, shuffle=True, collate_fn=collate)
    valid = DataLoader(Stays(96, 2), batch_size=48, collate_fn=collate)
    model = HeartRateModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(epochs):
        model.train()
        running = 0.0
        for vitals, target, hours in train:
            predicted = model(vitals)
            keep = valid_hours(hours, target.shape[1])
            loss = nn.functional.mse_loss(predicted[keep], target[keep])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}  mse {running / len(train):.4f}  valid mae {validate(model, valid):.4f}")


if __name__ == "__main__":
    main()
