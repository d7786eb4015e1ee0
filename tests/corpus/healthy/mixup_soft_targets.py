"""MixUp: cross-entropy against probability targets. The targets sum to one, the predictions are raw logits."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(77)
torch.manual_seed(77)
N_CLASSES, N_FEATURES = 5, 20


def blobs(n, centres):
    y = rng.integers(0, N_CLASSES, size=n)
    x = centres[y] + rng.normal(size=(n, N_FEATURES))
    return x.astype("float32"), y


def mixup(x, y, alpha=0.3):
    lam = float(rng.beta(alpha, alpha))
    partner = torch.randperm(len(x))
    onehot = F.one_hot(y, N_CLASSES).float()
    return lam * x + (1 - lam) * x[partner], lam * onehot + (1 - lam) * onehot[partner]


centres = rng.normal(size=(N_CLASSES, N_FEATURES)) * 0.9
xtr, ytr = blobs(900, centres)
xte, yte = blobs(300, centres)
mu, sigma = xtr.mean(0), xtr.std(0)
train = TensorDataset(torch.from_numpy((xtr - mu) / sigma), torch.from_numpy(ytr))
x_test, y_test = torch.from_numpy((xte - mu) / sigma), torch.from_numpy(yte)

model = nn.Sequential(nn.Linear(N_FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, N_CLASSES))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loader = DataLoader(train, batch_size=60, shuffle=True)


def evaluate():
    model.eval()
    with torch.no_grad():
        logits = model(x_test)
        result = F.cross_entropy(logits, y_test).item(), (logits.argmax(1) == y_test).float().mean().item()
    model.train()
    return result


losses = []
for epoch in range(8):
    for x, y in loader:
        x_mix, soft = mixup(x, y)
        loss = F.cross_entropy(model(x_mix), soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    test_loss, test_acc = evaluate()
    print(f"epoch {epoch} mixed loss {np.mean(losses[-15:]):.3f} test loss {test_loss:.3f} test acc {test_acc:.3f}")
