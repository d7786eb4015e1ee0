"""Monthly rent from flat listings collected from several portals."""

import argparse

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = ["area", "rooms", "floor", "year", "lat", "lon", "dist_station", "energy", "balcony", "kitchen"]


def scrape_portal(flats: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    return flats.sample(frac=share, random_state=seed)


def load_listings(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    flats = pd.DataFrame(
        {
            "area": rng.gamma(9.0, 8.0, n).round(1),
            "rooms": rng.integers(1, 6, n),
            "floor": rng.integers(0, 9, n),
            "year": rng.integers(1900, 2024, n),
            "lat": rng.normal(52.5, 0.05, n).round(5),
            "lon": rng.normal(13.4, 0.08, n).round(5),
            "dist_station": rng.exponential(600, n).round(0),
            "energy": rng.normal(120, 40, n).round(1),
            "balcony": rng.integers(0, 2, n),
            "kitchen": rng.integers(0, 2, n),
        }
    )
    centre = np.exp(-(((flats.lat - 52.5) / 0.05) ** 2) - ((flats.lon - 13.4) / 0.08) ** 2)
    rent = flats.area * (9 + 8 * centre) + 60 * flats.balcony + 90 * flats.kitchen - 0.05 * flats.dist_station
    flats["rent"] = (rent * rng.lognormal(0, 0.12, n)).round(0)
    pages = [scrape_portal(flats, share, seed + i) for i, share in enumerate((0.7, 0.6, 0.5))]
    return pd.concat(pages, ignore_index=True)


class RentNet(nn.Module):
    def __init__(self, num_features: int, width: int = 64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(num_features, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(width, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x).squeeze(-1)


def tensors(frame: pd.DataFrame, scaler: StandardScaler, centre: float, spread: float) -> TensorDataset:
    x = torch.tensor(scaler.transform(frame[FEATURES].to_numpy(dtype=float)), dtype=torch.float32)
    y = torch.tensor((np.log(frame["rent"].to_numpy()) - centre) / spread, dtype=torch.float32)
    return TensorDataset(x, y)


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total, count = 0.0, 0
    for x, y in loader:
        with torch.set_grad_enabled(optimizer is not None):
            loss = nn.functional.smooth_l1_loss(model(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(y)
        count += len(y)
    return total / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flats", type=int, default=1500)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    listings = load_listings(args.flats, args.seed)
    listings = listings[(listings.area > 15) & (listings.rent > 100)]
    listings = listings.reset_index(drop=True)
    train, test = train_test_split(listings, test_size=0.2, random_state=args.seed)
    scaler = StandardScaler().fit(train[FEATURES].to_numpy(dtype=float))
    log_rent = np.log(train["rent"].to_numpy())
    centre, spread = float(log_rent.mean()), float(log_rent.std())
    train_loader = DataLoader(tensors(train, scaler, centre, spread), batch_size=64, shuffle=True)
    test_loader = DataLoader(tensors(test, scaler, centre, spread), batch_size=256)

    model = RentNet(len(FEATURES))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        train_loss = run_epoch(model, train_loader, optimizer)
        test_loss = run_epoch(model, test_loader)
        print(f"epoch {epoch:2d} train {train_loss:.4f} test {test_loss:.4f}")


if __name__ == "__main__":
    main()
