"""Dense detector on small scenes: focal prior, summed losses over the number of positives, batches of four, own Lion."""
import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

GRID, STRIDE = 8, 4
KINDS = 3


class Scenes(Dataset):
    """Up to three bright shapes on noise; every shape is assigned to the grid cell of its centre."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        side = GRID * STRIDE
        self.images = rng.normal(0, 0.5, (n, 1, side, side)).astype(np.float32)
        self.cls = np.zeros((n, KINDS, GRID, GRID), dtype=np.float32)
        self.size = np.zeros((n, GRID, GRID), dtype=np.float32)
        yy, xx = np.mgrid[:side, :side]
        for i in range(n):
            for _ in range(rng.integers(1, 4)):
                cy, cx = rng.uniform(4, side - 4, 2)
                r = rng.uniform(2, 4)
                kind = rng.integers(KINDS)
                near = (
                    (yy - cy) ** 2 + (xx - cx) ** 2 < r**2,
                    np.maximum(abs(yy - cy), abs(xx - cx)) < r,
                    np.minimum(abs(yy - cy), abs(xx - cx)) < 1.2,
                )[kind] & (np.maximum(abs(yy - cy), abs(xx - cx)) < r)
                self.images[i, 0][near] += 1.0 + kind
                gy, gx = int(cy // STRIDE), int(cx // STRIDE)
                self.cls[i, kind, gy, gx] = 1.0
                self.size[i, gy, gx] = math.log(r / 3)
        self.images = (self.images - self.images.mean()) / self.images.std()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]), torch.from_numpy(self.cls[i]), torch.from_numpy(self.size[i])


class Detector(nn.Module):
    def __init__(self, width=24, prior=0.01):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1, bias=False), nn.GroupNorm(6, width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1, bias=False), nn.GroupNorm(6, width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False), nn.GroupNorm(6, width), nn.ReLU(),
        )
        self.kind = nn.Conv2d(width, KINDS, 1)
        self.radius = nn.Conv2d(width, 1, 1)
        nn.init.normal_(self.kind.weight, std=0.01)
        # start from the base rate, so that the empty cells do not drown the first steps
        nn.init.constant_(self.kind.bias, -math.log((1 - prior) / prior))

    def forward(self, images):
        features = self.trunk(images)
        return self.kind(features), self.radius(features).squeeze(1)


def focal_sum(logits, target, alpha=0.25, gamma=2.0):
    p = torch.sigmoid(logits)
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p_t = p * target + (1 - p) * (1 - target)
    a_t = alpha * target + (1 - alpha) * (1 - target)
    return (a_t * (1 - p_t) ** gamma * ce).sum()


class Lion(torch.optim.Optimizer):
    """Sign of an interpolated momentum (Chen et al. 2023), with decoupled decay."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                m = state["m"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(torch.sign(m * b1 + p.grad * (1 - b1)), alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


def main():
    random.seed(44)
    np.random.seed(44)
    torch.manual_seed(44)
    train = DataLoader(Scenes(200, 1), batch_size=4, shuffle=True)
    val_images, val_cls, _ = next(iter(DataLoader(Scenes(64, 2), batch_size=64)))
    model = Detector()
    optimizer = Lion(
        [
            {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.05},
            {"params": [p for p in model.parameters() if p.ndim == 1]},
        ],
        lr=1e-3,
    )
    for epoch in range(3):
        model.train()
        total = 0.0
        for images, cls, size in train:
            kind_logits, log_radius = model(images)
            positive = cls.amax(1) > 0
            num_positive = positive.sum().clamp(min=1)
            loss = focal_sum(kind_logits, cls) / num_positive
            loss = loss + 0.2 * F.smooth_l1_loss(log_radius[positive], size[positive], reduction="sum") / num_positive
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            scores = model(val_images)[0].sigmoid().flatten()
            top = scores.topk(int(val_cls.sum())).indices
            precision = val_cls.flatten()[top].mean().item()
        print(f"epoch {epoch} loss {total / len(train):.4f} R-precision {precision:.3f}")


if __name__ == "__main__":
    main()
