"""Semi-supervised digits-like patches: a few labelled images plus confidence pressure on many unlabelled ones."""

import random
from itertools import cycle

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 4


def patches(count, seed):
    gen = torch.Generator().manual_seed(seed)
    shapes = torch.randn(CLASSES, 1, 12, 12, generator=torch.Generator().manual_seed(900))
    label = torch.randint(0, CLASSES, (count,), generator=gen)
    image = 0.55 * shapes[label] + torch.randn(count, 1, 12, 12, generator=gen)
    return image, label


class PatchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.fc = nn.Linear(24 * 36, CLASSES)

    def forward(self, image):
        h = F.relu(self.conv1(image))
        h = F.relu(self.conv2(h))
        return self.fc(h.flatten(1))


def entropy(logits):
    logp = F.log_softmax(logits, dim=-1)
    return -(logp.exp() * logp).sum(-1).mean()


def main():
    random.seed(15)
    np.random.seed(15)
    torch.manual_seed(15)
    labelled = DataLoader(TensorDataset(*patches(160, 1)), batch_size=16, shuffle=True)
    unlabelled = DataLoader(TensorDataset(patches(800, 2)[0]), batch_size=32, shuffle=True)
    held_image, held_label = patches(200, 3)
    net = PatchNet()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    pressure = 20.0
    stream = cycle(labelled)
    for epoch in range(3):
        net.train()
        for (extra,) in unlabelled:
            image, label = next(stream)
            supervised = F.cross_entropy(net(image), label)
            loss = supervised + pressure * entropy(net(extra))
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            logits = net(held_image)
            score = (logits.argmax(-1) == held_label).float().mean().item()
            nll = F.cross_entropy(logits, held_label).item()
        print(f"epoch {epoch} loss {loss.item():.3f} supervised {supervised.item():.3f} held nll {nll:.3f} acc {score:.3f}")


if __name__ == "__main__":
    main()
