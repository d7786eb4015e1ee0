# %% [markdown]
# Activity recognition from accelerometer windows. The export job wrote the windows and the annotations
# as two families of shards.

# %%
import random
import re
from pathlib import Path

import numpy as np
import torch
from torch import nn

SEED = 99
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

ROOT = Path("activity_shards")
ROOT.mkdir(exist_ok=True)
ACTIVITIES = ["still", "walk", "run", "stairs"]
STEPS, AXES = 40, 3


# %%
def export_shards(num_shards=14, per_shard=90):
    rng = np.random.default_rng(SEED)
    t = np.arange(STEPS) / 10.0
    for shard in range(num_shards):
        labels = rng.integers(0, len(ACTIVITIES), per_shard)
        windows = 0.5 * rng.normal(size=(per_shard, STEPS, AXES))
        for row, label in enumerate(labels):
            pace = (0.0, 0.8, 1.9, 0.8)[label]
            amplitude = (0.0, 1.2, 1.8, 1.2)[label]
            phase = rng.uniform(0, 2 * np.pi)
            windows[row, :, 0] += amplitude * np.sin(2 * np.pi * pace * t + phase)
            windows[row, :, 1] += 0.6 * amplitude * np.cos(2 * np.pi * pace * t + phase)
            if label == 3:
                windows[row, :, 2] += np.linspace(-1.2, 1.2, STEPS)
        np.save(ROOT / f"windows-{shard}.npy", windows.astype(np.float32))
        np.save(ROOT / f"labels-{shard}.npy", labels)


export_shards()

# %%


def shard_number(path):
    return int(re.search(r"-(\d+)\.npy", path.name).group(1))


window_files = sorted(ROOT.glob("windows-*.npy"))
label_files = sorted(ROOT.glob("labels-*.npy"), key=shard_number)
assert len(window_files) == len(label_files)

x = torch.from_numpy(np.concatenate([np.load(f) for f in window_files]))
y = torch.from_numpy(np.concatenate([np.load(f) for f in label_files]))
x = (x - x.mean(dim=(0, 1))) / x.std(dim=(0, 1))
assert len(x) == len(y)

order = torch.randperm(len(x))
train_idx, val_idx = order[:1000], order[1000:]
print("train", len(train_idx), "val", len(val_idx))


# %%
class WindowGRU(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.gru = nn.GRU(AXES, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(hidden, len(ACTIVITIES))

    def forward(self, x):
        states, _ = self.gru(x)
        return self.out(self.drop(states.mean(dim=1)))


model = WindowGRU()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.CrossEntropyLoss()

# %%
for epoch in range(5):
    model.train()
    losses = []
    for idx in train_idx[torch.randperm(len(train_idx))].split(32):
        loss = loss_fn(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model(x[val_idx])
        val_loss = loss_fn(logits, y[val_idx]).item()
        val_acc = (logits.argmax(1) == y[val_idx]).float().mean().item()
    print(f"epoch {epoch}: train {np.mean(losses):.4f} val {val_loss:.4f} acc {val_acc:.3f}")
