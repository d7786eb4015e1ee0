"""Churn prediction from categorical columns, one embedding per column, early stopping on validation loss."""
import logging
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger(__name__)

CARDINALITIES = {"plan": 6, "region": 12, "device": 9, "channel": 5}


def set_seeds(value):
    random.seed(value)
    np.random.seed(value)
    torch.manual_seed(value)


class ChurnTable(Dataset):
    def __init__(self, rows, rng, effects):
        self.columns = {name: rng.integers(0, size, size=rows) for name, size in CARDINALITIES.items()}
        self.tenure = rng.normal(size=rows).astype(np.float32)
        score = sum(effects[name][values] for name, values in self.columns.items())
        score = score + effects["plan"][self.columns["plan"]] * self.tenure
        self.churn = (score + 0.3 * rng.normal(size=rows) > 0).astype(np.float32)

    def __len__(self):
        return len(self.churn)

    def __getitem__(self, i):
        codes = {name: int(values[i]) for name, values in self.columns.items()}
        return codes, self.tenure[i], self.churn[i]


class ChurnModel(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.embeddings = {name: nn.Embedding(size, width) for name, size in CARDINALITIES.items()}
        self.hidden = nn.Linear(width * len(CARDINALITIES) + 1, 32)
        self.output = nn.Linear(32, 1)

    def forward(self, codes, tenure):
        parts = [table(codes[name]) for name, table in self.embeddings.items()]
        x = torch.cat([*parts, tenure[:, None]], dim=1)
        return self.output(torch.relu(self.hidden(x))).squeeze(1)


def validation_loss(model, loader, criterion):
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for codes, tenure, churn in loader:
            total += criterion(model(codes, tenure), churn).item() * len(churn)
            count += len(churn)
    return total / count


def main():
    set_seeds(41)
    rng = np.random.default_rng(41)
    effects = {name: rng.normal(size=size) for name, size in CARDINALITIES.items()}
    train = DataLoader(ChurnTable(1500, rng, effects), batch_size=50, shuffle=True)
    valid = DataLoader(ChurnTable(400, rng, effects), batch_size=200)
    model = ChurnModel()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    best, patience = float("inf"), 2
    for epoch in range(4):
        model.train()
        total = 0.0
        for codes, tenure, churn in train:
            optimizer.zero_grad()
            loss = criterion(model(codes, tenure), churn)
            loss.backward()
            optimizer.step()
            total += loss.item()
        current = validation_loss(model, valid, criterion)
        log.info("epoch %d train %.4f valid %.4f", epoch, total / len(train), current)
        if current < best - 1e-4:
            best, patience = current, 2
        else:
            patience -= 1
            if patience == 0:
                break


if __name__ == "__main__":
    main()
