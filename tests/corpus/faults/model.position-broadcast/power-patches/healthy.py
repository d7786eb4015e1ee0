"""Patch transformer over household power curves: which appliance started, and in which order two of them ran."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, random_split

SEED = 42
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

LENGTH, PATCH = 96, 8


class PowerCurves(Dataset):
    """Label 0: kettle before oven, 1: oven before kettle, 2: kettle twice, 3: oven twice."""

    def __init__(self, size):
        kettle = np.concatenate([np.full(3, 3.0), np.zeros(5)])
        oven = np.array([1.5, -1.5, 1.5, -1.5, 1.5, -1.5, 1.5, -1.5])
        pairs = [(kettle, oven), (oven, kettle), (kettle, kettle), (oven, oven)]
        self.curves = np.random.normal(0.0, 0.4, size=(size, LENGTH)).astype(np.float32)
        self.labels = np.random.randint(0, 4, size=size)
        for curve, label in zip(self.curves, self.labels, strict=False):
            first = np.random.randint(0, 6) * PATCH
            second = np.random.randint(6, 12) * PATCH
            curve[first : first + PATCH] += pairs[label][0]
            curve[second : second + PATCH] += pairs[label][1]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(self.curves[i]), int(self.labels[i])


class PatchEmbedding(nn.Module):
    def __init__(self, patch, num_patches, dim):
        super().__init__()
        self.patch = patch
        self.value = nn.Linear(patch, dim)
        self.position = nn.Parameter(torch.empty(1, num_patches, dim))
        nn.init.normal_(self.position, std=0.1)

    def forward(self, series):
        patches = series.unfold(dimension=-1, size=self.patch, step=self.patch)
        return self.value(patches) + self.position


class Head(nn.Module):
    def __init__(self, dim, classes):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.linear = nn.Linear(dim, classes)

    def forward(self, tokens):
        return self.linear(self.norm(tokens.mean(dim=1)))


model = nn.Sequential(
    PatchEmbedding(PATCH, LENGTH // PATCH, 48),
    nn.TransformerEncoder(
        nn.TransformerEncoderLayer(48, 4, 96, dropout=0.0, activation="gelu", batch_first=True, norm_first=True),
        num_layers=2,
        enable_nested_tensor=False,
    ),
    Head(48, 4),
)
train_set, val_set = random_split(PowerCurves(1600), [1344, 256])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=128)

decay = [p for p in model.parameters() if p.ndim == 2]
no_decay = [p for p in model.parameters() if p.ndim != 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=1.5e-3, betas=(0.9, 0.98)
)

for epoch in range(6):
    model.train()
    losses = []
    for curves, labels in train_loader:
        loss = F.cross_entropy(model(curves), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    correct = 0
    with torch.no_grad():
        for curves, labels in val_loader:
            correct += (model(curves).argmax(-1) == labels).sum().item()
    print(f"epoch {epoch} | loss {np.mean(losses):.3f} | val acc {correct / len(val_set):.3f}")
