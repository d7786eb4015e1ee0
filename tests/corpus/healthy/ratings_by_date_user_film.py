"""Film ratings: user and film embeddings with time features, trained on the past and tested on the last weeks."""

import argparse
import random

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

USERS, FILMS, RATINGS = 120, 80, 4000


def load_ratings(rng):
    taste = rng.normal(0, 1, (USERS, 3))
    style = rng.normal(0, 1, (FILMS, 3))
    quality = rng.normal(0, 0.5, FILMS)
    user_id = rng.integers(0, USERS, RATINGS)
    film_id = np.minimum(rng.geometric(0.03, RATINGS) - 1, FILMS - 1)
    timestamp = np.sort(rng.integers(1_600_000_000, 1_640_000_000, RATINGS))
    year = 1980 + (film_id * 7) % 40
    rating = 3.4 + quality[film_id] + 0.45 * (taste[user_id] * style[film_id]).sum(1) + rng.normal(0, 0.25, RATINGS)
    return pd.DataFrame(
        {"user_id": user_id, "film_id": film_id, "timestamp": timestamp, "year": year, "rating": rating.clip(0.5, 5)}
    )


class RatingDataset(Dataset):
    def __init__(self, frame, stats):
        self.user = torch.tensor(frame["user_id"].to_numpy())
        self.film = torch.tensor(frame["film_id"].to_numpy())
        numeric = np.column_stack([(frame[name] - mean) / std for name, (mean, std) in stats.items()])
        self.numeric = torch.tensor(numeric, dtype=torch.float32)
        self.rating = torch.tensor(frame["rating"].to_numpy(), dtype=torch.float32)
        self.timestamp = torch.tensor(frame["timestamp"].to_numpy())

    def __len__(self):
        return len(self.rating)

    def __getitem__(self, i):
        return self.user[i], self.film[i], self.numeric[i], self.timestamp[i], self.rating[i]


class Recommender(nn.Module):
    def __init__(self, dim=8, mean_rating=3.0):
        super().__init__()
        self.user = nn.Embedding(USERS, dim)
        self.film = nn.Embedding(FILMS, dim)
        self.user_bias = nn.Embedding(USERS, 1)
        self.film_bias = nn.Embedding(FILMS, 1)
        self.side = nn.Linear(1, 1)
        for table in (self.user, self.film):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.film_bias):
            nn.init.normal_(table.weight, std=0.05)
        nn.init.constant_(self.side.bias, mean_rating)

    def forward(self, user, film, numeric):
        match = (self.user(user) * self.film(film)).sum(-1, keepdim=True)
        return (match + self.user_bias(user) + self.film_bias(film) + self.side(numeric)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=2e-2)
    args = parser.parse_args()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)

    ratings = load_ratings(np.random.default_rng(1))
    cutoff = ratings["timestamp"].quantile(0.85)
    past = ratings[ratings["timestamp"] <= cutoff]
    recent = ratings[ratings["timestamp"] > cutoff]
    stats = {"year": (past["year"].mean(), past["year"].std())}
    train_loader = DataLoader(RatingDataset(past, stats), args.batch, shuffle=True)
    test_loader = DataLoader(RatingDataset(recent, stats), args.batch)

    model = Recommender(mean_rating=float(past["rating"].mean()))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    mse = nn.MSELoss()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for user, film, numeric, _, rating in train_loader:
            optimizer.zero_grad()
            loss = mse(model(user, film, numeric), rating)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rating)
        model.eval()
        squared = 0.0
        with torch.no_grad():
            for user, film, numeric, _, rating in test_loader:
                squared += ((model(user, film, numeric) - rating) ** 2).sum().item()
        print(f"epoch {epoch}: train mse {total / len(past):.3f}, test rmse {(squared / len(recent)) ** 0.5:.3f}")


if __name__ == "__main__":
    main()
