"""Glucose forecasting from a stream: sharded iterable data set, two workers, gaps in the traces filled and flagged."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

WINDOW, HORIZON = 36, 4
CENTER, SPREAD = 125.0, 35.0


def simulate_patient(patient, length=400):
    rng = np.random.default_rng(500 + patient)
    t = np.arange(length)
    trace = 120 + 25 * np.sin(2 * np.pi * t / 48 + rng.uniform(0, 6)) + 15 * np.sin(2 * np.pi * t / 17 + rng.uniform(0, 6))
    trace = trace + np.cumsum(rng.normal(0, 1.0, length)) * 0.5 + rng.normal(0, 3, length)
    holes = rng.random(length) < 0.05
    start = int(rng.integers(50, length - 50))
    holes[start : start + 6] = True
    return np.where(holes, np.nan, trace)


class GlucoseStream(IterableDataset):
    def __init__(self, patients, windows_per_patient, seed, jitter):
        self.patients = list(patients)
        self.windows = windows_per_patient
        self.seed = seed
        self.jitter = jitter
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        worker = get_worker_info()
        rank, world = (worker.id, worker.num_workers) if worker else (0, 1)
        rng = np.random.default_rng([self.seed, self.epoch, rank])
        mine = {p: simulate_patient(p) for p in self.patients[rank::world]}
        for _ in range(self.windows * len(mine)):
            trace = mine[int(rng.choice(list(mine)))]
            at = int(rng.integers(0, len(trace) - WINDOW - HORIZON))
            past = trace[at : at + WINDOW]
            future = trace[at + WINDOW : at + WINDOW + HORIZON]
            if np.isnan(future).any() or np.isnan(past).mean() > 0.3:
                continue
            missing = np.isnan(past)
            filled = np.interp(np.arange(WINDOW), np.arange(WINDOW)[~missing], past[~missing])
            scaled = (filled - CENTER) / SPREAD
            if self.jitter:
                scaled = scaled + rng.normal(0, 0.03, WINDOW)
            features = np.stack([scaled, missing.astype(float)], axis=1)
            yield features.astype(np.float32), ((future - CENTER) / SPREAD).astype(np.float32)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, HORIZON)

    def forward(self, x):
        states, _ = self.rnn(x)
        return x[:, -1:, 0] + self.out(states[:, -1])


def main():
    torch.manual_seed(19)
    np.random.seed(19)
    stream = GlucoseStream(range(12), 90, seed=19, jitter=True)
    train_loader = DataLoader(stream, batch_size=32, num_workers=2)
    val_loader = DataLoader(GlucoseStream(range(12, 16), 40, seed=1, jitter=False), batch_size=40)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        stream.set_epoch(epoch)
        model.train()
        losses = []
        for past, future in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(past), future)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        squared = count = 0
        with torch.no_grad():
            for past, future in val_loader:
                squared += ((model(past) - future) ** 2).sum().item()
                count += future.numel()
        print(f"epoch {epoch} train mse {np.mean(losses):.3f} val rmse {SPREAD * (squared / count) ** 0.5:.1f} mg/dl")


if __name__ == "__main__":
    main()
