"""Image classifier with separate optimizers for the convolutional trunk and the head."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def synth(n, side, gen):
    """A bright 3x3 square on a noisy background; its quadrant is the class."""
    y = torch.randint(0, 4, (n,), generator=gen)
    img = 0.9 * torch.randn(n, 1, side, side, generator=gen)
    half = side // 2
    for i in range(n):
        top = int(torch.randint(0, half - 3, (1,), generator=gen)) + half * (int(y[i]) // 2)
        left = int(torch.randint(0, half - 3, (1,), generator=gen)) + half * (int(y[i]) % 2)
        img[i, 0, top:top + 3, left:left + 3] += 1.6
    return img, y


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 12, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(3, 12)
        self.conv = nn.Conv2d(12, 16, 3, stride=2, padding=1)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)))
        return F.relu(self.conv(x)).flatten(1)


def parse():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--side", type=int, default=16)
    p.add_argument("--steps", type=int, default=90)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--trunk-lr", type=float, default=0.05)
    p.add_argument("--head-lr", type=float, default=3e-3)
    p.add_argument("--seed", type=int, default=17)
    return p.parse_args()


def main():
    args = parse()
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    train_x, train_y = synth(1600, args.side, gen)
    test_x, test_y = synth(400, args.side, gen)
    mean, std = train_x.mean(), train_x.std()
    train_x, test_x = (train_x - mean) / std, (test_x - mean) / std

    trunk = Trunk()
    head = nn.Linear(16 * (args.side // 4) ** 2, 4)
    trunk_opt = torch.optim.SGD(trunk.parameters(), lr=args.trunk_lr, momentum=0.9)
    head_opt = torch.optim.Adam(head.parameters(), lr=args.head_lr)

    order = torch.randperm(len(train_x), generator=gen)
    cursor = 0
    for step in range(args.steps):
        if cursor + args.batch > len(order):
            order = torch.randperm(len(train_x), generator=gen)
            cursor = 0
        idx = order[cursor:cursor + args.batch]
        cursor += args.batch

        loss = F.cross_entropy(head(trunk(train_x[idx])), train_y[idx])
        trunk_opt.zero_grad()
        head_opt.zero_grad()
        loss.backward()
        trunk_opt.step()
        head_opt.step()

        if step % 10 == 0 or step == args.steps - 1:
            trunk.eval(), head.eval()
            with torch.no_grad():
                acc = (head(trunk(test_x)).argmax(1) == test_y).float().mean().item()
            trunk.train(), head.train()
            print(f"step {step:3d}  loss {loss.item():.4f}  test acc {acc:.3f}")


if __name__ == "__main__":
    main()
