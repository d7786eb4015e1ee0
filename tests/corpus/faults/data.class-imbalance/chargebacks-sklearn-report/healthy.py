"""Card payments: which ones are charged back? A dense network, checked with scikit-learn."""
import numpy as np
import torch
from sklearn.metrics import average_precision_score, recall_score
from torch import nn

rng = np.random.default_rng(21)
torch.manual_seed(21)


def payments(n):
    charged_back = rng.random(n) < 0.015
    amount = rng.normal(0.0, 1.0, n) + 1.1 * charged_back
    hour = rng.uniform(-1.7, 1.7, n)
    distance = rng.normal(0.0, 1.0, n) + 0.9 * charged_back
    age = rng.normal(0.0, 1.0, n) - 0.8 * charged_back
    table = np.stack([amount, hour, distance, age], axis=1).astype(np.float32)
    return torch.from_numpy(table), torch.from_numpy(charged_back.astype(np.float32))


x_train, y_train = payments(6000)
x_test, y_test = payments(3000)

net = nn.Sequential(nn.Linear(4, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1))
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
objective = nn.BCEWithLogitsLoss(pos_weight=(1 - y_train).sum() / y_train.sum())

for epoch in range(3):
    net.train()
    total = 0.0
    for rows in torch.randperm(len(x_train)).split(150):
        adam.zero_grad()
        loss = objective(net(x_train[rows]).squeeze(1), y_train[rows])
        loss.backward()
        adam.step()
        total += loss.item() * len(rows)
    net.eval()
    with torch.no_grad():
        risk = torch.sigmoid(net(x_test)).squeeze(1).numpy()
    recall = recall_score(y_test.numpy(), risk > 0.5, zero_division=0)
    precision = average_precision_score(y_test.numpy(), risk)
    print(f"epoch {epoch} loss {total / len(x_train):.4f} recall {recall:.3f} average precision {precision:.3f}")
