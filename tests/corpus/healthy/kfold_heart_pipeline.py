"""Cross-validates a small network on a clinical table: per fold a fresh imputer, encoder, scaler and model."""
import numpy as np
import pandas as pd
import torch
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = 19
NUMERIC = ["age", "pressure", "cholesterol", "rate"]
COARSE = ["sex", "pain", "slope"]


def clinic(n=690):
    rng = np.random.default_rng(SEED)
    age = rng.normal(54, 9, n).round()
    pain = rng.integers(0, 4, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "pressure": rng.normal(130, 17, n).round(-1),
            "cholesterol": rng.normal(245, 50, n).round(-1),
            "rate": (215 - age + rng.normal(0, 18, n)).round(),
            "sex": rng.choice(["f", "m"], n),
            "pain": pain.astype(str),
            "slope": rng.choice(["up", "flat", "down"], n, p=[0.45, 0.45, 0.1]),
        }
    )
    score = 0.06 * (age - 54) + 0.9 * (pain == 3) - 0.03 * (frame["rate"] - 160) + 0.8 * (frame["sex"] == "m") - 0.9
    disease = (score + rng.logistic(scale=0.6, size=n) > 0).astype(int).to_numpy()
    frame.loc[rng.random(n) < 0.08, "cholesterol"] = np.nan
    return frame, disease


def preparation():
    numeric = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return ColumnTransformer([("numeric", numeric, NUMERIC), ("coarse", OneHotEncoder(sparse_output=False), COARSE)])


def tensors(features, disease):
    return TensorDataset(torch.tensor(features, dtype=torch.float32), torch.tensor(disease, dtype=torch.float32))


def fit_fold(train, valid, width, epochs=8):
    model = nn.Sequential(nn.Linear(width, 24), nn.SiLU(), nn.Dropout(0.1), nn.Linear(24, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        model.train()
        for features, disease in DataLoader(train, batch_size=32, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            loss = loss_fn(model(features), disease)
            loss.backward()
            optimizer.step()
    model.eval()
    scores, truth = [], []
    with torch.no_grad():
        for features, disease in DataLoader(valid, batch_size=64):
            scores.append(model(features))
            truth.append(disease)
    return roc_auc_score(torch.cat(truth), torch.cat(scores))


def main():
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    frame, disease = clinic()
    folds = StratifiedKFold(n_splits=3, shuffle=True, random_state=SEED)
    aucs = []
    for number, (train_rows, valid_rows) in enumerate(folds.split(frame, disease)):
        prepare = preparation()
        train_x = prepare.fit_transform(frame.iloc[train_rows])
        valid_x = prepare.transform(frame.iloc[valid_rows])
        auc = fit_fold(tensors(train_x, disease[train_rows]), tensors(valid_x, disease[valid_rows]), train_x.shape[1])
        aucs.append(auc)
        print(f"fold {number}: AUC {auc:.3f}")
    print(f"mean AUC {np.mean(aucs):.3f} +- {np.std(aucs):.3f}")


if __name__ == "__main__":
    main()
