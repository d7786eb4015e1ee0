"""Latent-factor model for film ratings: user and film vectors plus biases, fitted to centred stars."""

import numpy as np
import torch
from torch import nn

USERS, FILMS, RATINGS = 60, 80, 1400


def simulate(seed):
    rng = np.random.default_rng(seed)
    taste, style = rng.normal(size=(USERS, 3)), rng.normal(size=(FILMS, 3))
    pairs = rng.choice(USERS * FILMS, size=RATINGS, replace=False)
    user, film = pairs // FILMS, pairs % FILMS
    mood, fame = rng.normal(0, 0.5, USERS), rng.normal(0, 0.5, FILMS)
    stars = mood[user] + fame[film] + 0.35 * (taste[user] * style[film]).sum(1) + rng.normal(0, 0.7, RATINGS)
    return torch.from_numpy(user), torch.from_numpy(film), torch.from_numpy(stars.astype(np.float32))


class Factors(nn.Module):
    def __init__(self, rank):
        super().__init__()
        self.user = nn.Embedding(USERS, rank)
        self.film = nn.Embedding(FILMS, rank)
        self.user_bias = nn.Embedding(USERS, 1)
        self.film_bias = nn.Embedding(FILMS, 1)
        for table in (self.user, self.film, self.user_bias, self.film_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user, film):
        match = (self.user(user) * self.film(film)).sum(-1)
        return match + self.user_bias(user).squeeze(-1) + self.film_bias(film).squeeze(-1)


def rmse(model, user, film, stars):
    model.eval()
    with torch.no_grad():
        return (model(user, film) - stars).square().mean().sqrt().item()


def fit(rank=32, epochs=18, batch=70, lr=1e-2, seed=17):
    torch.manual_seed(seed)
    np.random.seed(seed)
    user, film, stars = simulate(seed)
    order = torch.randperm(RATINGS)
    train, valid = order[:1120], order[1120:]
    stars = stars - stars[train].mean()
    model = Factors(rank)
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    history = []
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for rows in train[torch.randperm(len(train))].split(batch):
            loss = nn.functional.mse_loss(model(user[rows], film[rows]), stars[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(rows)
        history.append(rmse(model, user[valid], film[valid], stars[valid]))
        print(f"{epoch:02d}  train rmse {(total / len(train)) ** 0.5:.3f}  valid rmse {history[-1]:.3f}")
    return history


if __name__ == "__main__":
    fit()
