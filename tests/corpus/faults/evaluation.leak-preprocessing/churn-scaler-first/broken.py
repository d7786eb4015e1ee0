"""Predicts churn of phone customers from their usage."""
import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 7
np.random.seed(SEED)
torch.manual_seed(SEED)

COLUMNS = ["minutes", "messages", "data_gb", "calls_to_support", "tenure_months", "monthly_fee"]


def load_customers(n=900):
    rng = np.random.default_rng(SEED)
    frame = pd.DataFrame(
        {
            "minutes": rng.gamma(4, 80, n),
            "messages": rng.poisson(60, n).astype(float),
            "data_gb": rng.gamma(2, 3, n),
            "calls_to_support": rng.poisson(1.5, n).astype(float),
            "tenure_months": rng.uniform(1, 72, n),
            "monthly_fee": rng.normal(35, 9, n),
        }
    )
    score = 0.9 * (frame["calls_to_support"] - 1.5) - 0.05 * (frame["tenure_months"] - 36) + 0.07 * (frame["monthly_fee"] - 35)
    churned = (score + rng.logistic(scale=0.5, size=n) > 0).astype(int)
    return frame, churned


def loaders(batch_size=32):
    frame, churned = load_customers()
    X, y = frame[COLUMNS].to_numpy(), churned.to_numpy()
    scaler = StandardScaler()
    X = scaler.fit_transform(X)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=SEED, stratify=y)
    pack = lambda a, b: TensorDataset(torch.tensor(a, dtype=torch.float32), torch.tensor(b, dtype=torch.float32))  # noqa: E731
    return DataLoader(pack(X_train, y_train), batch_size, shuffle=True), DataLoader(pack(X_val, y_val), batch_size)


model = nn.Sequential(nn.Linear(len(COLUMNS), 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
train_loader, val_loader = loaders()

for epoch in range(6):
    model.train()
    train_loss = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(xb)
    model.eval()
    val_loss, hits = 0.0, 0
    with torch.no_grad():
        for xb, yb in val_loader:
            logits = model(xb).squeeze(1)
            val_loss += criterion(logits, yb).item() * len(xb)
            hits += ((logits > 0) == yb.bool()).sum().item()
    n_train, n_val = len(train_loader.dataset), len(val_loader.dataset)
    print(f"epoch {epoch}: train {train_loss / n_train:.4f} val {val_loss / n_val:.4f} accuracy {hits / n_val:.3f}")
