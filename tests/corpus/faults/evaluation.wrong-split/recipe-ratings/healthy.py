"""Two-tower rating model for recipes: user and recipe embeddings plus recipe attributes."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

seed = 99
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)

num_users, num_recipes, num_attrs, num_ratings = 80, 120, 8, 3000


class Ratings(Dataset):
    def __init__(self):
        taste = np.random.randn(num_users, num_attrs) / np.sqrt(num_attrs)
        self.attrs = np.random.randn(num_recipes, num_attrs).astype(np.float32)
        quality = 0.5 * np.random.randn(num_recipes)
        pairs = np.random.choice(num_users * num_recipes, num_ratings, replace=False)
        self.users, self.recipes = pairs // num_recipes, pairs % num_recipes
        score = (taste[self.users] * self.attrs[self.recipes]).sum(1) + quality[self.recipes]
        self.ratings = (score + 0.4 * np.random.randn(num_ratings)).astype(np.float32)

    def __len__(self):
        return num_ratings

    def __getitem__(self, i):
        recipe = self.recipes[i]
        return int(self.users[i]), int(recipe), self.attrs[recipe], self.ratings[i]


class TwoTower(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.user = nn.Embedding(num_users, dim)
        self.recipe = nn.Embedding(num_recipes, dim)
        self.attrs = nn.Linear(num_attrs, dim)
        self.recipe_bias = nn.Embedding(num_recipes, 1)
        nn.init.normal_(self.user.weight, std=0.2)
        nn.init.normal_(self.recipe.weight, std=0.2)
        nn.init.zeros_(self.recipe_bias.weight)

    def forward(self, user, recipe, attrs):
        item = self.recipe(recipe) + self.attrs(attrs)
        return (self.user(user) * item).sum(-1) + self.recipe_bias(recipe).squeeze(-1)


ratings = Ratings()
order = np.random.permutation(len(ratings)).tolist()
cut = int(0.8 * len(order))
train_set = Subset(ratings, order[:cut])
valid_set = Subset(ratings, order[cut:])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=200)

model = TwoTower()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.MSELoss()

best = float("inf")
for epoch in range(6):
    model.train()
    train_sse = 0.0
    for user, recipe, attrs, rating in train_loader:
        loss = loss_fn(model(user, recipe, attrs), rating)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_sse += loss.item() * len(rating)

    model.eval()
    valid_sse = 0.0
    for user, recipe, attrs, rating in valid_loader:
        predicted = model(user, recipe, attrs)
        valid_sse += ((predicted - rating) ** 2).sum().item()
    rmse = (valid_sse / len(valid_set)) ** 0.5
    if rmse < best:
        best = rmse
        weights = {name: value.clone() for name, value in model.state_dict().items()}
    print(f"epoch {epoch} train mse {train_sse / len(train_set):.4f} valid rmse {rmse:.4f}")
model.load_state_dict(weights)
print("best valid rmse", round(best, 4))
