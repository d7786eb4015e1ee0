# %% [markdown]
# # Film ratings with user and film embeddings
# The batch that fits is small, so gradients are accumulated.

# %%
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

np.random.seed(0)
torch.manual_seed(0)

NUM_USERS, NUM_FILMS, RANK = 60, 80, 3
ACCUM_STEPS = 4


# %%
class Ratings(Dataset):
    def __init__(self, users, films, stars):
        self.users, self.films, self.stars = users, films, stars

    def __len__(self):
        return len(self.users)

    def __getitem__(self, i):
        return self.users[i], self.films[i], self.stars[i]


taste = np.random.normal(size=(NUM_USERS, RANK))
trait = np.random.normal(size=(NUM_FILMS, RANK))
bias = 0.8 * np.random.normal(size=NUM_FILMS)
pairs = np.random.permutation(NUM_USERS * NUM_FILMS)[:2400]
user_ids, film_ids = pairs // NUM_FILMS, pairs % NUM_FILMS
scores = 0.6 * (taste[user_ids] * trait[film_ids]).sum(1) + bias[film_ids] + 0.1 * np.random.normal(size=len(pairs))
scores = ((scores - scores[:2064].mean()) / scores[:2064].std()).astype(np.float32)

train_set = Ratings(user_ids[:2064], film_ids[:2064], scores[:2064])
test_set = Ratings(user_ids[2064:], film_ids[2064:], scores[2064:])
train_loader = DataLoader(train_set, batch_size=48, shuffle=True)
test_loader = DataLoader(test_set, batch_size=112)
print(len(train_loader), "batches per epoch")


# %%
class Recommender(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.user = nn.Embedding(NUM_USERS, dim)
        self.film = nn.Embedding(NUM_FILMS, dim)
        nn.init.normal_(self.user.weight, std=0.3)
        nn.init.normal_(self.film.weight, std=0.3)
        self.film_bias = nn.Embedding(NUM_FILMS, 1)
        nn.init.zeros_(self.film_bias.weight)
        self.mlp = nn.Sequential(nn.Linear(3 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, users, films):
        u, f = self.user(users), self.film(films)
        deep = self.mlp(torch.cat([u, f, u * f], dim=-1))
        return (deep + self.film_bias(films)).squeeze(-1)


model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()

# %%
for epoch in range(10):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for i, (users, films, stars) in enumerate(train_loader):
        loss = criterion(model(users, films), stars)
        (loss / ACCUM_STEPS).backward()
        total += loss.item()
        if (i + 1) % ACCUM_STEPS == 0:
            optimizer.step()
            optimizer.zero_grad()

    model.eval()
    with torch.no_grad():
        errors = torch.cat([(model(users, films) - stars) ** 2 for users, films, stars in test_loader])
    print(f"epoch {epoch}  train mse {total / len(train_loader):.3f}  test rmse {errors.mean().sqrt().item():.3f}")
