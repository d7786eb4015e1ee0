"""Texture patches, four kinds: a small convolutional network with batch normalisation."""
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(36)

STEPS = 100
BATCH_SIZE = 2


def textures(n):
    kind = torch.arange(4).repeat(n // 4)
    row = torch.arange(12).float()
    frequency = torch.rand(n, 1, 1) * 0.6 + 1.2
    phase = torch.rand(n, 1, 1) * 6.28
    vertical = torch.sin(frequency * row[None, :, None] + phase).expand(n, 12, 12)
    horizontal = vertical.transpose(1, 2)
    waves = torch.stack([vertical, horizontal, vertical * horizontal, (vertical + horizontal) / 1.4], dim=1)
    patch = waves[torch.arange(n), kind] + 0.5 * torch.randn(n, 12, 12)
    return patch[:, None], kind


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)
    )


model = nn.Sequential(
    block(1, 12),
    block(12, 24),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(24, 24, bias=False),
    nn.BatchNorm1d(24),
    nn.ReLU(),
    nn.Linear(24, 4),
)

x_train, y_train = textures(1600)
x_test, y_test = textures(240)
shift, spread = x_train.mean(), x_train.std()
loader = DataLoader(
    TensorDataset((x_train - shift) / spread, y_train), batch_size=BATCH_SIZE, shuffle=True, drop_last=True
)
x_test = (x_test - shift) / spread

optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
window = []
batches = itertools.chain.from_iterable(itertools.repeat(loader))
for step, (patch, kind) in enumerate(itertools.islice(batches, STEPS), start=1):
    model.train()
    loss = criterion(model(patch), kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    window.append(loss.item())
    if step % 20 == 0:
        model.eval()
        with torch.no_grad():
            logits = model(x_test)
            accuracy = (logits.argmax(1) == y_test).float().mean()
            test_loss = criterion(logits, y_test)
        print(f"step {step} train {sum(window[-20:]) / 20:.4f} test {test_loss:.4f} accuracy {accuracy:.3f}")
