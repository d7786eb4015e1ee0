"""Neural collaborative filtering on ratings; the job is stopped half-way and continued from its checkpoint."""

import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NUM_USERS, NUM_ITEMS, DIM = 120, 80, 16
CKPT = "ncf.pt"


class NCF(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(NUM_USERS, DIM)
        self.item = nn.Embedding(NUM_ITEMS, DIM)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        self.mlp = nn.Sequential(nn.Linear(2 * DIM, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.out = nn.Linear(32 + DIM, 1)

    def forward(self, u, i):
        eu, ei = self.user(u), self.item(i)
        deep = self.mlp(torch.cat([eu, ei], dim=-1))
        return self.out(torch.cat([deep, eu * ei], dim=-1)).squeeze(-1)


def ratings(n=4000):
    g = torch.Generator().manual_seed(5)
    taste, genre = torch.randn(NUM_USERS, 3, generator=g), torch.randn(NUM_ITEMS, 3, generator=g)
    popular = torch.randn(NUM_ITEMS, generator=g)
    u = torch.randint(0, NUM_USERS, (n,), generator=g)
    i = torch.randint(0, NUM_ITEMS, (n,), generator=g)
    r = 0.5 * (taste[u] * genre[i]).sum(-1) + 0.7 * popular[i] + 0.2 * torch.randn(n, generator=g)
    r = (r - r.mean()) / r.std()
    return TensorDataset(u[:3200], i[:3200], r[:3200]), TensorDataset(u[3200:], i[3200:], r[3200:])


def build():
    model = NCF()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    return model, optimizer


def save(accelerator, model, optimizer, epoch):
    weights = accelerator.unwrap_model(model).state_dict()
    accelerator.save({"model": weights, "epoch": epoch}, CKPT)


def load(accelerator, model, optimizer):
    state = torch.load(CKPT, map_location="cpu")
    accelerator.unwrap_model(model).load_state_dict(state["model"])
    return state["epoch"] + 1


def run(until_epoch, resume):
    accelerator = Accelerator(cpu=True)
    train_set, val_set = ratings()
    model, optimizer = build()
    order = torch.Generator()
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True, generator=order)
    val_loader = DataLoader(val_set, batch_size=200)
    model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)

    first = load(accelerator, model, optimizer) if resume else 0
    for epoch in range(first, until_epoch):
        order.manual_seed(1000 + epoch)
        model.train()
        total = 0.0
        for u, i, r in train_loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(u, i), r)
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = sum(F.mse_loss(model(u, i), r).item() for u, i, r in val_loader) / len(val_loader)
        accelerator.print(f"epoch {epoch}: train {total / len(train_loader):.4f} val {val:.4f}")
        save(accelerator, model, optimizer, epoch)


if __name__ == "__main__":
    set_seed(17)
    if os.path.exists(CKPT):
        os.remove(CKPT)
    run(until_epoch=2, resume=False)
    print("restarting from", CKPT)
    run(until_epoch=4, resume=True)
