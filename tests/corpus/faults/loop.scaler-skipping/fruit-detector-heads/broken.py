import argparse
import random

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Orchard(Dataset):
    """One fruit per crop: where it is (cx, cy, in [-1, 1]) and which of three kinds."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        g = np.linspace(-1, 1, 20)
        yy, xx = np.meshgrid(g, g, indexing="ij")
        self.kind = rng.integers(0, 3, n)
        self.centre = rng.uniform(-0.6, 0.6, (n, 2))
        img = 0.4 * rng.standard_normal((n, 3, 20, 20))
        for i in range(n):
            cx, cy = self.centre[i]
            img[i, self.kind[i]] += 2.0 * np.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 0.08)
        mean, std = img.mean((0, 2, 3), keepdims=True), img.std((0, 2, 3), keepdims=True)
        self.img = ((img - mean) / std).astype(np.float32)

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        return self.img[i], np.float32(self.centre[i]), int(self.kind[i])


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1),
            nn.GroupNorm(4, 16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.GroupNorm(4, 32),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.box = nn.Linear(32 * 25, 2)
        self.cls = nn.Linear(32 * 25, 3)

    def forward(self, img):
        h = self.trunk(img)
        return self.box(h), self.cls(h)


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--init-scale", type=float, default=2.0**14)
    ap.add_argument("--growth-factor", type=float, default=8.0)
    ap.add_argument("--growth-interval", type=int, default=4)
    ap.add_argument("--seed", type=int, default=3)
    return ap.parse_args()


def main():
    args = get_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    loader = DataLoader(Orchard(640, 1), args.bs, shuffle=True)
    net = Detector()
    opt = torch.optim.Adam(net.parameters(), args.lr)
    scaler = torch.amp.GradScaler(
        "cpu", init_scale=args.init_scale, growth_factor=args.growth_factor, growth_interval=args.growth_interval
    )
    for epoch in range(args.epochs):
        net.train()
        box_sum = cls_sum = 0.0
        for img, centre, kind in loader:
            opt.zero_grad()
            with torch.autocast("cpu", torch.float16):
                box, cls = net(img)
                box_loss = F.smooth_l1_loss(box.float(), centre)
                cls_loss = F.cross_entropy(cls.float(), kind)
            scaler.scale(box_loss + cls_loss).backward()
            scaler.step(opt)
            scaler.update()
            box_sum += box_loss.item()
            cls_sum += cls_loss.item()
        print(f"epoch {epoch}: box {box_sum / len(loader):.4f} cls {cls_sum / len(loader):.4f}")

    test = Orchard(128, 2)
    net.eval()
    with torch.no_grad():
        box, cls = net(torch.from_numpy(test.img))
    print("test acc", (cls.argmax(1).numpy() == test.kind).mean(), "box mae", np.abs(box.numpy() - test.centre).mean())


if __name__ == "__main__":
    main()
