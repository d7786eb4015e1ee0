"""Camera-trap species: pretrain a conv backbone on rotation prediction, then fine-tune everything on species."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def set_seed(seed=0):
    np.random.seed(seed)
    torch.manual_seed(seed)


def make_images(n, rng):
    species = rng.integers(0, 4, n)
    yy, xx = np.mgrid[-1:1:14j, -1:1:14j]
    masks = [np.exp(-((xx - 0.3) ** 2 + yy**2) * 4), np.exp(-(xx**2) * 12 - yy**2), np.exp(-((xx + yy) ** 2) * 8), xx * yy]
    imgs = np.stack([masks[s] * (1 + 0.2 * rng.standard_normal()) for s in species])
    imgs = imgs + 0.35 * rng.standard_normal(imgs.shape)
    imgs = (imgs - imgs.mean()) / imgs.std()
    return torch.tensor(imgs[:, None], dtype=torch.float32), torch.tensor(species)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 3, padding=1)
        self.c2 = nn.Conv2d(16, 32, 3, padding=1, stride=2)
        self.c3 = nn.Conv2d(32, 32, 3, padding=1, stride=2)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        return F.relu(self.c3(x)).flatten(1)


def set_trainable(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


def run_epoch(backbone, head, optimizer, batches):
    total, count = 0.0, 0
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(head(backbone(x)), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        count += len(y)
    return total / count


def rotation_batches(x, batch_size):
    for idx in torch.randperm(len(x)).split(batch_size):
        k = torch.randint(0, 4, (len(idx),))
        rotated = torch.stack([torch.rot90(img, int(r), (1, 2)) for img, r in zip(x[idx], k)])
        yield rotated, k


def species_batches(x, y, batch_size):
    for idx in torch.randperm(len(x)).split(batch_size):
        yield x[idx], y[idx]


def main():
    set_seed(14)
    rng = np.random.default_rng(14)
    unlabeled, _ = make_images(320, rng)
    x, y = make_images(320, rng)
    vx, vy = make_images(120, rng)

    backbone = Backbone()
    rotation_head = nn.Linear(32 * 16, 4)
    pre = torch.optim.Adam([*backbone.parameters(), *rotation_head.parameters()], lr=1e-3)
    for epoch in range(2):
        print(f"pretrain {epoch} loss {run_epoch(backbone, rotation_head, pre, rotation_batches(unlabeled, 32)):.4f}")

    # warm up the fresh head on fixed features, then let the backbone follow
    head = nn.Linear(32 * 16, 4)
    set_trainable(backbone, False)
    warm = torch.optim.Adam(head.parameters(), lr=1e-3)
    print(f"head only loss {run_epoch(backbone, head, warm, species_batches(x, y, 32)):.4f}")

    full = torch.optim.Adam([{"params": backbone.parameters(), "lr": 3e-4}, {"params": head.parameters()}], lr=1e-3)
    for epoch in range(4):
        train_loss = run_epoch(backbone, head, full, species_batches(x, y, 32))
        backbone.eval(), head.eval()
        with torch.no_grad():
            acc = (head(backbone(vx)).argmax(1) == vy).float().mean().item()
        backbone.train(), head.train()
        print(f"fine-tune {epoch} loss {train_loss:.4f} val acc {acc:.3f}")


if __name__ == "__main__":
    main()
