"""Letters drawn by hand, three noisy copies of each; a small convolutional network."""
import random

import torch
import torch.nn.functional as F
from torch import nn

STROKES = {
    "L": [(2, 2, 9, 2), (9, 2, 9, 8)],
    "T": [(2, 2, 2, 9), (2, 5, 9, 5)],
    "X": [(2, 2, 9, 9), (2, 9, 9, 2)],
    "I": [(2, 5, 9, 5), (9, 5, 9, 6)],
}


def draw(letter):
    image = torch.zeros(12, 12)
    dy, dx = random.randint(-2, 2), random.randint(-2, 2)
    for y0, x0, y1, x1 in STROKES[letter]:
        for i in range(9):
            y = y0 + (y1 - y0) * i / 8 + random.gauss(0, 0.4) + dy
            x = x0 + (x1 - x0) * i / 8 + random.gauss(0, 0.4) + dx
            image[min(11, max(0, round(y))), min(11, max(0, round(x)))] = 1.0
    return (image - 0.13) / 0.33


def noisy_copies(items, times):
    return [(image + 0.02 * torch.randn_like(image), label) for image, label in items for _ in range(times)]


def tensors(items):
    return torch.stack([image for image, _ in items]).unsqueeze(1), torch.tensor([label for _, label in items])


random.seed(71)
torch.manual_seed(71)
letters = list(STROKES)
items = [(draw(letters[i % 4]), i % 4) for i in range(480)]
random.shuffle(items)
cut = len(items) * 3 // 4
train_items, valid_items = noisy_copies(items[:cut], 3), items[cut:]
images, labels = tensors(train_items)
valid_images, valid_labels = tensors(valid_items)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
    nn.Linear(32, 4),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0)
for epoch in range(3):
    net.train()
    for pick in torch.randperm(len(images)).chunk(30):
        loss = F.cross_entropy(net(images[pick]), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        good = (net(valid_images).argmax(1) == valid_labels).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.3f} validation accuracy {good:.3f}")
