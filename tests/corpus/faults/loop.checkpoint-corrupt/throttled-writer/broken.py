"""Denoising network for vibration traces; checkpoints are written by a background thread that spares the shared disk."""
import io
import queue
import threading
import time

import numpy as np
import torch
from torch import nn

torch.manual_seed(8)
np.random.seed(8)


class CheckpointWriter(threading.Thread):
    """Writes snapshots in small pieces so that other jobs on the disk are not disturbed."""

    def __init__(self, piece=8192, pause=0.005):
        super().__init__(daemon=True)
        self.jobs = queue.Queue()
        self.piece, self.pause = piece, pause

    def submit(self, state, path):
        buffer = io.BytesIO()
        torch.save(state, buffer)
        self.jobs.put((buffer.getvalue(), path))

    def run(self):
        while True:
            payload, path = self.jobs.get()
            with open(path, "wb", buffering=0) as f:
                for start in range(0, len(payload), self.piece):
                    f.write(payload[start : start + self.piece])
                    time.sleep(self.pause)
            self.jobs.task_done()

    def flush(self):
        while not self.jobs.empty():
            time.sleep(0.001)


class Denoiser(nn.Module):
    def __init__(self, width=96, length=64):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(length, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.decode = nn.Linear(width, length)

    def forward(self, x):
        return self.decode(self.encode(x))


def traces(n, seed, length=64):
    rng = np.random.default_rng(seed)
    t = np.arange(length)
    freq, phase = rng.uniform(0.1, 0.5, (n, 1)), rng.uniform(0, 2 * np.pi, (n, 1))
    return torch.from_numpy((1.4 * np.sin(freq * t + phase)).astype(np.float32))


def evaluate(model, clean, noisy):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(noisy), clean).item()


train_clean, val_clean = traces(960, 1), traces(160, 2)
val_noisy = val_clean + 0.5 * torch.randn_like(val_clean)

model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
writer = CheckpointWriter()
writer.start()

best, best_epoch = float("inf"), -1
for epoch in range(6):
    model.train()
    for idx in torch.randperm(len(train_clean)).split(48):
        clean = train_clean[idx]
        noisy = clean + 0.5 * torch.randn_like(clean)
        loss = nn.functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    val = evaluate(model, val_clean, val_noisy)
    print(f"epoch {epoch}: train {loss.item():.4f} val {val:.4f}")
    if val < best:
        best, best_epoch = val, epoch
        writer.submit({"model": model.state_dict(), "epoch": epoch, "val": val}, "best.pt")

writer.flush()
checkpoint = torch.load("best.pt")
model.load_state_dict(checkpoint["model"])
print(f"best epoch {checkpoint['epoch']}: reloaded val {evaluate(model, val_clean, val_noisy):.4f}")
