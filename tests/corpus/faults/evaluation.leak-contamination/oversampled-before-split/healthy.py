"""Rare defects on a production line; the rare class is repeated until both are about equal."""
import numpy as np
import torch
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 35


def measurements():
    rng = np.random.default_rng(SEED)
    defect = rng.random(900) < 0.15
    sensors = rng.normal(size=(900, 10)).astype(np.float32)
    sensors[:, 0] += 1.5 * defect
    sensors[:, 3] -= 1.2 * defect
    return sensors, defect.astype(np.int64)


def balance(sensors, defect):
    rng = np.random.default_rng(SEED + 1)
    rare = np.flatnonzero(defect == 1)
    extra = rng.choice(rare, (defect == 0).sum() - len(rare))
    rows = np.concatenate([np.arange(len(defect)), extra])
    return sensors[rows], defect[rows]


def prepare():
    sensors, defect = measurements()
    x_train, x_test, y_train, y_test = train_test_split(sensors, defect, test_size=0.25, random_state=SEED, stratify=defect)
    x_train, y_train = balance(x_train, y_train)
    to_set = lambda x, y: TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    return to_set(x_train, y_train), to_set(x_test, y_test)


def evaluate(model, loader):
    model.eval()
    guesses, truths = [], []
    with torch.no_grad():
        for x, y in loader:
            guesses.extend(model(x).argmax(1).tolist())
            truths.extend(y.tolist())
    return balanced_accuracy_score(truths, guesses)


def main():
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    train, test = prepare()
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(4):
        model.train()
        for x, y in DataLoader(train, batch_size=32, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} balanced accuracy {evaluate(model, DataLoader(test, batch_size=64)):.3f}")


main()
