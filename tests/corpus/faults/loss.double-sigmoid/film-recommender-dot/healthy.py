import numpy as np
import torch
import torch.nn.functional as F

np.random.seed(8)
torch.manual_seed(8)
USERS, FILMS, K = 80, 60, 8
taste, genre = np.random.randn(USERS, 3), np.random.randn(FILMS, 3)
u = np.random.randint(0, USERS, 6000)
f = np.random.randint(0, FILMS, 6000)
liked = (np.einsum("nd,nd->n", taste[u], genre[f]) + 0.2 * np.random.randn(6000) > 0).astype("float32")
u, f, liked = map(torch.from_numpy, (u, f, liked))


class Factors(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.user = torch.nn.Embedding(USERS, K)
        self.film = torch.nn.Embedding(FILMS, K)
        self.user_bias = torch.nn.Embedding(USERS, 1)
        self.film_bias = torch.nn.Embedding(FILMS, 1)
        for table in (self.user, self.film):
            torch.nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.film_bias):
            torch.nn.init.normal_(table.weight, std=0.01)

    def forward(self, users, films):
        match = (self.user(users) * self.film(films)).sum(-1)
        match = match + self.user_bias(users).squeeze(-1) + self.film_bias(films).squeeze(-1)
        return match


net = Factors()
adam = torch.optim.Adam(net.parameters(), lr=0.03)
for epoch in range(3):
    running = 0.0
    for rows in torch.randperm(5000).split(200):
        adam.zero_grad()
        error = F.binary_cross_entropy_with_logits(net(u[rows], f[rows]), liked[rows])
        error.backward()
        adam.step()
        running += error.item()
    print(f"[{epoch}] {running / 25:.4f}")
