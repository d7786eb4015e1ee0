"""Rare machine faults from sensor windows: weighted loss, cut-off tuned on validation, validation without no_grad.

Macro F1 is computed once over the collected scores, the cut-off is taken on the logits, the training windows are jittered
and the validation ones are not, and validation keeps its graph only for the length of one batch.
"""

import numpy as np
import torch
from sklearn.metrics import f1_score, precision_recall_curve
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(21)
torch.manual_seed(21)


def record(count):
    labels = (np.random.rand(count) < 0.12).astype(np.float32)
    t = np.arange(32)
    speed = np.random.uniform(0.25, 0.35, count)
    x = np.sin(speed[:, None] * t[None, :] + np.random.uniform(0, 6.28, count)[:, None])
    x += labels[:, None] * 0.8 * np.sin(1.9 * t)[None, :]
    x += 0.5 * np.random.randn(count, 32)
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(labels)


train_x, train_y = record(1500)
valid_x, valid_y = record(450)
train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=50, shuffle=True)
valid_loader = DataLoader(TensorDataset(valid_x, valid_y), batch_size=128)

model = nn.Sequential(
    nn.Conv1d(1, 16, 5, padding=2),
    nn.BatchNorm1d(16),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 16, 5, padding=2),
    nn.BatchNorm1d(16),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(1),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(16, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
pos_weight = (1 - train_y).sum() / train_y.sum()
criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)

for epoch in range(5):
    model.train()
    for x, y in train_loader:
        x = x * (1 + 0.1 * torch.randn(len(x), 1, 1)) + 0.05 * torch.randn_like(x)
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    scores, truth, total = [], [], 0.0
    for x, y in valid_loader:
        logits = model(x).squeeze(1)
        total += criterion(logits, y).item() * len(y)
        scores.append(logits.detach())
        truth.append(y)
    scores, truth = torch.cat(scores).numpy(), torch.cat(truth).numpy()
    precision, recall, cuts = precision_recall_curve(truth, scores)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-9)
    cut = cuts[f1[:-1].argmax()]
    macro = f1_score(truth, scores >= cut, average="macro")
    print(f"epoch {epoch} loss {loss.item():.4f} valid {total / len(valid_y):.4f} cut {cut:.2f} macro F1 {macro:.3f}")
