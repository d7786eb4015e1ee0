"""Detect Parkinsonian gait from accelerometer windows; each patient contributes several windows."""

import random

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 31
NUM_PATIENTS = 80
WINDOWS = 15


def load_table(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(NUM_PATIENTS):
        sick = int(rng.integers(2))
        habit = rng.normal(0.0, 1.0, 8)
        for _ in range(WINDOWS):
            features = habit + rng.normal(0.0, 0.35, 8)
            features[:3] += 0.9 * (2 * sick - 1)
            rows.append([f"P{patient:03d}", *features, sick])
    columns = ["patient_id", "stride", "cadence", "sway", "jerk", "freq1", "freq2", "energy", "entropy", "label"]
    return pd.DataFrame(rows, columns=columns)


def tensors(frame: pd.DataFrame, mean: pd.Series, std: pd.Series) -> TensorDataset:
    features = frame.drop(columns=["patient_id", "label"])
    x = torch.tensor(((features - mean) / std).to_numpy(), dtype=torch.float32)
    y = torch.tensor(frame["label"].to_numpy(), dtype=torch.float32)
    return TensorDataset(x, y)


class GaitClassifier(nn.Module):
    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(num_features, 32),
            nn.LayerNorm(32),
            nn.GELU(),
            nn.Dropout(0.2),
            nn.Linear(32, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x).squeeze(-1)


def main() -> None:
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)

    table = load_table(SEED)
    splitter = GroupShuffleSplit(n_splits=1, test_size=0.25, random_state=SEED)
    train_rows, test_rows = next(splitter.split(table, groups=table["patient_id"]))
    train_table, test_table = table.iloc[train_rows], table.iloc[test_rows]
    features = train_table.drop(columns=["patient_id", "label"])
    mean, std = features.mean(), features.std()
    train_loader = DataLoader(tensors(train_table, mean, std), batch_size=32, shuffle=True)
    test_set = tensors(test_table, mean, std)

    model = GaitClassifier(features.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(5):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        model.eval()
        with torch.no_grad():
            logits = model(test_set.tensors[0])
        auc = roc_auc_score(test_set.tensors[1].numpy(), logits.numpy())
        print(f"epoch {epoch + 1}: train loss {total / len(train_table):.4f}  test AUC {auc:.3f}")


if __name__ == "__main__":
    main()
