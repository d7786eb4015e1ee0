"""Small residual network on synthetic shape images, run through Accelerate."""

import argparse

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    """Discs, squares and crosses at random places on a noisy background."""

    def __init__(self, count, seed, size=16):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[0:size, 0:size]
        images, labels = [], []
        for _ in range(count):
            kind = int(rng.integers(0, 3))
            cx, cy = rng.uniform(5, size - 5, 2)
            r = rng.uniform(2.5, 4.5)
            if kind == 0:
                mark = (xx - cx) ** 2 + (yy - cy) ** 2 <= r * r
            elif kind == 1:
                mark = (abs(xx - cx) <= r) & (abs(yy - cy) <= r)
            else:
                mark = ((abs(xx - cx) <= 1) | (abs(yy - cy) <= 1)) & (abs(xx - cx) <= r) & (abs(yy - cy) <= r)
            images.append(1.4 * mark - 0.3 + rng.normal(0, 0.35, (size, size)))
            labels.append(kind)
        self.images = torch.tensor(np.stack(images), dtype=torch.float32).unsqueeze(1)
        self.labels = torch.tensor(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"pixel_values": self.images[i], "labels": self.labels[i]}


class Block(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.skip = nn.Sequential()
        if stride != 1 or c_in != c_out:
            self.skip = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        h = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(h)) + self.skip(x))


class TinyResNet(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 12, 3, 1, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU())
        self.layers = nn.Sequential(Block(12, 12, 1), Block(12, 24, 2))
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(24, num_classes)

    def forward(self, x):
        h = self.layers(self.stem(x)).mean(dim=(2, 3))
        return self.fc(self.drop(h))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=2e-2)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()

    set_seed(2024)
    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(Shapes(960, seed=1), batch_size=args.batch_size, shuffle=True, drop_last=True)
    eval_loader = DataLoader(Shapes(200, seed=2), batch_size=args.batch_size)

    model = TinyResNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for batch in train_loader:
            loss = criterion(model(batch["pixel_values"]), batch["labels"])
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            running += loss.item()

        model.eval()
        correct = total = 0
        for batch in eval_loader:
            with torch.no_grad():
                logits = model(batch["pixel_values"])
            predictions, references = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
            correct += (predictions == references).sum().item()
            total += references.numel()
        accelerator.print(f"epoch {epoch}: train loss {running / len(train_loader):.4f}  eval accuracy {correct / total:.3f}")


if __name__ == "__main__":
    main()
