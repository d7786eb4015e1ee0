"""Which of the buildings stand empty? Tabular data, F1 on a test set read in batches."""
import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import f1_score
from torch.utils.data import DataLoader, TensorDataset


def buildings(count, rng):
    empty = (rng.random(count) < 0.3).astype(np.float32)
    rows = rng.standard_normal((count, 7)).astype(np.float32)
    rows[:, 0] -= 1.4 * empty
    rows[:, 4] += 1.0 * empty
    return TensorDataset(torch.from_numpy(rows), torch.from_numpy(empty))


class Classifier:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(7, 40), nn.SiLU(), nn.Linear(40, 1), nn.Flatten(0))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=4e-3, weight_decay=0.0)
        self.loss = nn.BCEWithLogitsLoss()

    def fit(self, loader):
        self.net.train()
        total = 0.0
        for rows, empty in loader:
            self.optimizer.zero_grad()
            loss = self.loss(self.net(rows), empty)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def score(self, loader):
        self.net.eval()
        truth, guess = [], []
        for rows, empty in loader:
            truth.append(empty.numpy())
            guess.append((self.net(rows) > 0).numpy())
        return float(f1_score(np.concatenate(truth), np.concatenate(guess), zero_division=0))


if __name__ == "__main__":
    torch.manual_seed(62)
    np.random.seed(62)
    rng = np.random.default_rng(62)
    train = DataLoader(buildings(1280, rng), batch_size=32, shuffle=True)
    test = DataLoader(buildings(260, rng), batch_size=16)
    classifier = Classifier()
    for epoch in range(3):
        print(f"epoch {epoch} loss {classifier.fit(train):.3f} f1 {classifier.score(test):.3f}")
