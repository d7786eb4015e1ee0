"""Multi-label findings on small synthetic chest films: a ResNet trained with Accelerate."""
import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

FINDINGS = ("nodule", "effusion", "line", "cardiomegaly")


class Films(Dataset):
    def __init__(self, n, seed, size=20):
        rng = np.random.default_rng(seed)
        self.y = (rng.random((n, len(FINDINGS))) < 0.35).astype(np.float32)
        yy, xx = np.mgrid[:size, :size]
        images = 0.5 * rng.standard_normal((n, 1, size, size))
        for i in range(n):
            if self.y[i, 0]:
                cy, cx = rng.integers(4, size - 6, 2)
                images[i, 0] += 2.0 * np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 3)
            if self.y[i, 1]:
                images[i, 0, -rng.integers(3, 6) :, :] += 1.2
            if self.y[i, 2]:
                images[i, 0, :, rng.integers(2, size - 2)] += 1.8
            if self.y[i, 3]:
                images[i, 0] += 1.0 * (((yy - size / 2) ** 2 + (xx - size / 2) ** 2) < rng.integers(25, 40))
        images = (images - 0.25) / 0.8
        self.x = images.astype(np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        skip = x if self.down is None else self.down(x)
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + skip)


class ChestNet(nn.Module):
    def __init__(self, num_findings):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 12, 3, 1, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU(inplace=True))
        self.layer1 = BasicBlock(12, 12)
        self.layer2 = BasicBlock(12, 24, stride=2)
        self.layer3 = BasicBlock(24, 32, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(32, num_findings)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        x = self.pool(x).flatten(1)
        return self.fc(x)


def main():
    set_seed(99)
    accelerator = Accelerator(cpu=True)
    train_ds, val_ds = Films(800, 1), Films(200, 2)
    train_dl = DataLoader(train_ds, batch_size=32, shuffle=True)
    val_dl = DataLoader(val_ds, batch_size=50)
    positives = torch.from_numpy(train_ds.y).mean(0)
    model = ChestNet(len(FINDINGS))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    model, optimizer, train_dl, val_dl = accelerator.prepare(model, optimizer, train_dl, val_dl)
    criterion = nn.BCEWithLogitsLoss(pos_weight=(1 - positives) / positives)

    for epoch in range(4):
        model.train()
        total = 0.0
        for images, targets in train_dl:
            outputs = model(images)
            loss = criterion(outputs, targets)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item() * len(images)
        model.eval()
        scores, truth = [], []
        for images, targets in val_dl:
            with torch.no_grad():
                outputs = model(images)
            scores.append(accelerator.gather_for_metrics(outputs))
            truth.append(accelerator.gather_for_metrics(targets))
        auc = roc_auc_score(torch.cat(truth).numpy(), torch.cat(scores).numpy(), average="macro")
        accelerator.print(f"epoch {epoch}: loss {total / len(train_ds):.4f}  val macro AUC {auc:.3f}")


if __name__ == "__main__":
    main()
