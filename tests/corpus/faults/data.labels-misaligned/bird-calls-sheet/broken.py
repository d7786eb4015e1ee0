# %% [markdown]
# # Bird call baseline
# Clips live one per file under `calls/`, the species sheet is one line per recording in recording order.

# %%
import csv
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
np.random.seed(3)

SPECIES = ["wren", "finch", "owl", "heron", "swift"]
FOLDER = Path("calls")

# %% [markdown]
# Recorder dump (stands in for the field recorder's SD card).


# %%
def dump_recordings(folder, count=480, bins=20, frames=24):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(3)
    rows = []
    for k in range(count):
        species = int(rng.integers(len(SPECIES)))
        spec = rng.normal(0, 1.0, (bins, frames)).astype(np.float32)
        start, band = int(rng.integers(0, frames - 10)), 2 + 3 * species
        for t in range(10):
            drift = t // 4 if species % 2 else -(t // 4)
            spec[np.clip(band + drift, 0, bins - 1), start + t] += 3.0
        np.save(folder / f"rec{k}.npy", spec)
        rows.append({"species": SPECIES[species], "site": f"s{int(rng.integers(4))}"})
    with open(folder / "sheet.csv", "w", newline="") as handle:
        writer = csv.DictWriter(handle, fieldnames=["species", "site"])
        writer.writeheader()
        writer.writerows(rows)


dump_recordings(FOLDER)

# %% Load everything into memory
files = sorted(FOLDER.glob("rec*.npy"))
with open(FOLDER / "sheet.csv", newline="") as handle:
    labels = [SPECIES.index(row["species"]) for row in csv.DictReader(handle)]
assert len(files) == len(labels)

specs = torch.from_numpy(np.stack([np.load(f) for f in files])).unsqueeze(1)
targets = torch.tensor(labels)

split = torch.randperm(len(targets))
train_idx, val_idx = split[:400], split[400:]
mean, std = specs[train_idx].mean(), specs[train_idx].std()
specs = (specs - mean) / std
print(specs.shape, torch.bincount(targets).tolist())


# %%
class CallNet(nn.Module):
    def __init__(self, n_out):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc1 = nn.Linear(24 * 5 * 6, 48)
        self.fc2 = nn.Linear(48, n_out)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


net = CallNet(len(SPECIES))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)

# %%
history = []
for epoch in range(8):
    net.train()
    order = train_idx[torch.randperm(len(train_idx))]
    losses = []
    for chunk in order.split(40):
        opt.zero_grad()
        loss = F.cross_entropy(net(specs[chunk]), targets[chunk])
        loss.backward()
        opt.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        logits = net(specs[val_idx])
        val_loss = F.cross_entropy(logits, targets[val_idx]).item()
        val_acc = (logits.argmax(1) == targets[val_idx]).float().mean().item()
    history.append((np.mean(losses), val_loss, val_acc))
    print(f"epoch {epoch}  train {history[-1][0]:.3f}  val {val_loss:.3f}  acc {val_acc:.2%}")
