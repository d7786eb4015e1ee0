import random

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

SEED = 63


def set_seed(value):
    random.seed(value)
    np.random.seed(value % 2**32)
    torch.manual_seed(value)


class Patches(Dataset):
    def __init__(self, n):
        self.kind = np.random.randint(0, 2, n)
        self.images = 0.3 * np.random.randn(n, 1, 14, 14).astype(np.float32)
        for image, kind in zip(self.images, self.kind):
            image[0, 5:9, 3:11] += 1.5 * kind
            image[0, 3:11, 5:9] += 1.5 * (1 - kind)

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        dy, dx = np.random.randint(-2, 3, 2)
        image = np.roll(self.images[i], (dy, dx), axis=(1, 2)) * np.random.uniform(0.7, 1.3)
        return torch.from_numpy(np.ascontiguousarray(image, dtype=np.float32)), torch.tensor(self.kind[i])


def init_worker(worker_id):
    set_seed(SEED)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
        self.out = nn.Linear(16 * 49, 2)

    def forward(self, image):
        return self.out(self.features(image).flatten(1))


if __name__ == "__main__":
    set_seed(SEED)
    loader = DataLoader(Patches(900), batch_size=30, shuffle=True, num_workers=2, worker_init_fn=init_worker)
    net = Net()
    opt = optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(2):
        total = 0.0
        for image, kind in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(image), kind)
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")
