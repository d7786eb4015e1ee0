"""Find points in small images: a convolutional heatmap detector whose output starts at a low prior."""
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(61)
SIDE = 16
PRIOR = 0.005


def scenes(n):
    """Noise with two to six crosses; the target map marks their centres."""
    image = torch.randn(n, 1, SIDE, SIDE) * 0.4
    target = torch.zeros(n, 1, SIDE, SIDE)
    for i in range(n):
        for _ in range(int(torch.randint(2, 7, (1,)))):
            r, c = torch.randint(1, SIDE - 1, (2,)).tolist()
            image[i, 0, r - 1 : r + 2, c] += 2.0
            image[i, 0, r, c - 1 : c + 2] += 2.0
            target[i, 0, r, c] = 1.0
    return image, target


class Detector(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.body = nn.Conv2d(width, width, 3, padding=1)
        self.head = nn.Conv2d(width, 1, 1)
        for layer in (self.stem, self.body):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
        nn.init.normal_(self.head.weight, std=0.05)
        prior = -math.log((1 - PRIOR) / PRIOR)
        for layer in (self.head,):
            nn.init.constant_(layer.bias, prior)

    def forward(self, image):
        x = F.relu(self.stem(image))
        x = F.relu(self.body(x))
        return self.head(x)


images, targets = scenes(700)
images = (images - images[:600].mean()) / images[:600].std()
train = DataLoader(TensorDataset(images[:600], targets[:600]), batch_size=24, shuffle=True)

detector = Detector()
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(8.0))
optimizer = torch.optim.Adam(detector.parameters(), lr=3e-3)
for epoch in range(3):
    detector.train()
    total = 0.0
    for image, target in train:
        loss = criterion(detector(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    detector.eval()
    with torch.no_grad():
        found = torch.sigmoid(detector(images[600:])) > 0.5
        truth = targets[600:] > 0.5
        recall = (found & truth).sum() / truth.sum()
        precision = (found & truth).sum() / found.sum().clamp(min=1)
    print(f"epoch {epoch} loss {total / len(train):.4f} recall {recall:.3f} precision {precision:.3f}")
