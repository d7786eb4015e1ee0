"""A miniature of our callback loop, on a synthetic click log."""

import random
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.simplefilter("ignore")


class Callback:
    def on_epoch_begin(self, learner): ...

    def on_batch_begin(self, learner): ...

    def on_batch_end(self, learner): ...

    def on_epoch_end(self, learner): ...


class OneCycle(Callback):
    def __init__(self, max_lr):
        self.max_lr, self.policy = max_lr, None

    def on_epoch_begin(self, learner):
        if self.policy is None:
            total = learner.epochs * len(learner.train_dl)
            self.policy = torch.optim.lr_scheduler.OneCycleLR(learner.opt, self.max_lr, total_steps=total)

    def on_batch_end(self, learner):
        self.policy.step()


class Meter(Callback):
    def on_epoch_begin(self, learner):
        self.losses = []

    def on_batch_end(self, learner):
        self.losses.append(learner.loss.item())

    def on_epoch_end(self, learner):
        learner.model.eval()
        with torch.no_grad():
            auc = np.mean([learner.score(batch) for batch in learner.valid_dl])
        print(f"epoch {learner.epoch}: loss {np.mean(self.losses):.4f} hit rate {auc:.3f}")


class Clicks(Dataset):
    def __init__(self, n, users=40, items=50, seed=0):
        rng, world = np.random.default_rng(seed), np.random.default_rng(500)
        taste, trait = world.normal(0, 1, (users, 4)), world.normal(0, 1, (items, 4))
        self.user, self.item = rng.integers(0, users, n), rng.integers(0, items, n)
        affinity = (taste[self.user] * trait[self.item]).sum(1)
        self.click = (affinity + 0.3 * rng.standard_normal(n) > 0).astype(np.float32)

    def __len__(self):
        return len(self.click)

    def __getitem__(self, i):
        return self.user[i], self.item[i], self.click[i]


class Factorizer(nn.Module):
    def __init__(self, users=40, items=50, dim=12):
        super().__init__()
        self.user, self.item = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.mlp = nn.Sequential(nn.Linear(3 * dim, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, user, item):
        u, v = self.user(user), self.item(item)
        return self.mlp(torch.cat([u, v, u * v], dim=-1)).squeeze(-1)


class Learner:
    def __init__(self, model, train_dl, valid_dl, callbacks, epochs):
        self.model, self.train_dl, self.valid_dl = model, train_dl, valid_dl
        self.callbacks, self.epochs = callbacks, epochs
        self.opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.loss_fn = nn.BCEWithLogitsLoss()

    def fire(self, event):
        for cb in self.callbacks:
            getattr(cb, event)(self)

    def score(self, batch):
        user, item, click = batch
        return ((self.model(user, item) > 0).float() == click).float().mean().item()

    def fit(self):
        for self.epoch in range(self.epochs):
            self.fire("on_epoch_begin")
            for user, item, click in self.train_dl:
                self.model.train()
                self.fire("on_batch_begin")
                self.loss = self.loss_fn(self.model(user, item), click)
                self.opt.zero_grad()
                self.loss.backward()
                self.opt.step()
                self.fire("on_batch_end")
            self.fire("on_epoch_end")


if __name__ == "__main__":
    random.seed(9)
    np.random.seed(9)
    torch.manual_seed(9)
    learner = Learner(
        Factorizer(),
        DataLoader(Clicks(6400, seed=1), batch_size=256, shuffle=True),
        DataLoader(Clicks(1024, seed=2), batch_size=512),
        [OneCycle(3e-2), Meter()],
        epochs=4,
    )
    learner.fit()
