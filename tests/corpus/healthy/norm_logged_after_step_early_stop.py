"""Valve-fault classifier: half precision with a scaler, clipped before the step, norms logged after it, stopped early."""

import copy
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(31)
np.random.seed(31)
torch.manual_seed(31)


def recordings(count, rng):
    t = np.arange(48) / 48
    labels = (rng.random(count) < 0.5).astype(np.float32)
    rows = rng.normal(0, 0.9, (count, 2, 48))
    for i, faulty in enumerate(labels):
        rate = rng.uniform(5, 7) if faulty else rng.uniform(2, 4)
        rows[i, 0] += np.sin(2 * np.pi * (rate * t + rng.random()))
        rows[i, 1] += np.cos(2 * np.pi * (rate * t + rng.random()))
    flipped = rng.random(count) < 0.04
    labels[flipped] = 1 - labels[flipped]
    return torch.tensor(rows, dtype=torch.float32), torch.tensor(labels)


class ValveNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        convs = [nn.Conv1d(2 if i == 0 else width, width, 5, padding=2) for i in range(3)]
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in convs)
        self.stages = list(zip(convs, self.norms))  # the same modules, in the order of the forward pass
        self.head = nn.Linear(2 * width, 1)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        for conv, norm in self.stages:
            x = nn.functional.max_pool1d(nn.functional.gelu(norm(conv(x))), 2)
        pooled = torch.cat([x.mean(-1), x.amax(-1)], dim=1)
        return self.head(self.drop(pooled)).squeeze(1)


def grad_norm(parameters):
    return nn.utils.clip_grad_norm_(parameters, float("inf")).item()


rng = np.random.default_rng(31)
train_loader = DataLoader(TensorDataset(*recordings(480, rng)), batch_size=32, shuffle=True)
val_x, val_y = recordings(240, rng)

model = ValveNet()
decayed = [p for n, p in model.named_parameters() if n.endswith("weight") and p.dim() > 1]
plain = [p for n, p in model.named_parameters() if not (n.endswith("weight") and p.dim() > 1)]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.02}, {"params": plain, "weight_decay": 0.0}], lr=3e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
criterion = nn.BCEWithLogitsLoss()

best, best_state, waited = float("inf"), None, 0
for epoch in range(16):
    model.train()
    losses, norms = [], []
    for x, y in train_loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(x)
        loss = criterion(logits.float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        norms.append(grad_norm(model.parameters()))
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model(val_x)
        val_loss = criterion(logits, val_y).item()
        accuracy = ((logits > 0) == (val_y > 0.5)).float().mean().item()
    scheduler.step(val_loss)
    print(f"epoch {epoch} train {np.mean(losses):.3f} val {val_loss:.3f} accuracy {accuracy:.3f} norm {np.mean(norms):.2f}")
    if val_loss < best - 1e-3:
        best, best_state, waited = val_loss, copy.deepcopy(model.state_dict()), 0
    else:
        waited += 1
        if waited == 3:
            break
model.load_state_dict(best_state)
print(f"kept the weights with validation loss {best:.3f}")
