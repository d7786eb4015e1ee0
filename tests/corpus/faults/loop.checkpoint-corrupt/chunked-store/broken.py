"""Gesture recognition from accelerometer windows; checkpoints go through a small blob store."""

import io
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

CHUNK = 4096
STORE = Path("blobs")


class BlobStore:
    """Writes blobs piece by piece, as the remote store wants them."""

    def __init__(self, root):
        self.root = root
        self.root.mkdir(exist_ok=True)

    def put(self, key, payload):
        with open(self.root / key, "wb") as blob:
            for part in range(len(payload) // CHUNK):
                blob.write(payload[part * CHUNK : (part + 1) * CHUNK])

    def get(self, key):
        return (self.root / key).read_bytes()


class GestureGRU(nn.Module):
    def __init__(self, classes=4, hidden=32):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        out, _ = self.gru(x)
        return self.fc(self.norm(out.mean(dim=1)))


def gestures(n, seed):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, n)
    t = np.linspace(0, 1, 20)
    speed = np.array([1, 2, 3, 4])[label][:, None] * rng.uniform(0.9, 1.1, (n, 1))
    phase = rng.uniform(0, 2 * np.pi, (n, 1))
    axes = [np.sin(2 * np.pi * speed * t + phase + k) for k in range(3)]
    x = np.stack(axes, axis=-1) * 1.4 + rng.normal(0, 0.2, (n, 20, 3))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(label))


def save_checkpoint(store, key, model, optimizer, epoch):
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, buffer)
    store.put(key, buffer.getvalue())


def load_checkpoint(store, key, model, optimizer):
    state = torch.load(io.BytesIO(store.get(key)))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    loss_sum, hits, n = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
            n += len(y)
    return loss_sum / n, hits / n


def main():
    random.seed(9)
    np.random.seed(9)
    torch.manual_seed(9)
    store = BlobStore(STORE)
    train_loader = DataLoader(gestures(640, 1), batch_size=32, shuffle=True)
    val_loader = DataLoader(gestures(160, 2), batch_size=80)
    model = GestureGRU()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    best = float("inf")
    for epoch in range(4):
        train_loss, train_acc = run_epoch(model, train_loader, optimizer)
        val_loss, val_acc = run_epoch(model, val_loader)
        print(f"{epoch}: train {train_loss:.3f}/{train_acc:.2f} val {val_loss:.3f}/{val_acc:.2f}")
        if val_loss < best:
            best = val_loss
            save_checkpoint(store, "best", model, optimizer, epoch)

    epoch = load_checkpoint(store, "best", model, optimizer)
    loss, acc = run_epoch(model, val_loader)
    print(f"best epoch {epoch}: val {loss:.3f}/{acc:.2f}")


if __name__ == "__main__":
    main()
