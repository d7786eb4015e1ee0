"""Next-item recommendation; the GRU is rebuilt with a larger item table once the catalogue has been read."""
import random

import numpy as np
import torch
from torch import nn


class NextItem(nn.Module):
    def __init__(self, items, width=32):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.score = nn.Linear(width, items)

    def forward(self, history):
        states, _ = self.gru(self.items(history))
        return self.score(states[:, -1])

    def grow(self, items):
        """A copy with room for more items; what has been learned so far is kept."""
        bigger = NextItem(items, self.items.embedding_dim)
        with torch.no_grad():
            old = self.items.num_embeddings
            bigger.items.weight[:old] = self.items.weight
            bigger.score.weight[:old] = self.score.weight
            bigger.score.bias[:old] = self.score.bias
            bigger.gru.load_state_dict(self.gru.state_dict())
        return bigger


class Recommender:
    def __init__(self, items=20, lr=8e-3):
        self.lr = lr
        self.model = NextItem(items)
        self.reset_optimizer()

    def reset_optimizer(self):
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)

    def add_items(self, items):
        self.model = self.model.grow(items)

    def learn(self, history, following):
        self.model.train()
        loss = nn.functional.cross_entropy(self.model(history), following)
        self.model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def hit_rate(self, history, following, k=3):
        self.model.eval()
        top = self.model(history).topk(k, dim=1).indices
        return (top == following.unsqueeze(1)).any(dim=1).float().mean().item()


def browse(n, items, length=6):
    """Customers walk along the shelf, mostly by one or two places."""
    at = np.random.randint(items, size=n)
    walk = [at]
    direction = np.random.choice([-1, 1], size=n)
    for _ in range(length):
        at = (at + direction * np.random.choice([1, 2], p=[0.8, 0.2], size=n)) % items
        walk.append(at)
    rows = torch.from_numpy(np.stack(walk, axis=1))
    return rows[:, :-1], rows[:, -1]


def main():
    random.seed(29)
    np.random.seed(29)
    torch.manual_seed(29)
    recommender = Recommender()
    recommender.add_items(30)
    losses = []
    for step in range(1, 111):
        losses.append(recommender.learn(*browse(48, 30)))
        if step % 22 == 0:
            rate = recommender.hit_rate(*browse(400, 30))
            print(f"step {step} loss {np.mean(losses[-22:]):.4f} hit rate at 3 {rate:.3f}")


if __name__ == "__main__":
    main()
