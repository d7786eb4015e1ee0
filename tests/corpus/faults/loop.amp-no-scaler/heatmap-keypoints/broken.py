"""Keypoint localisation: a small CNN regresses one probability map per keypoint, half-precision forward pass."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)

SIZE, POINTS = 12, 2
PEAK = 0.01  # height of a unit-mass map, sets the scale of the output
EPOCHS = 3
BATCH = 16
LR = 4e-3
AMP_DTYPE = torch.float16


def scenes(n):
    """A bright plus and a dark minus on noise; the target is a unit-mass Gaussian at each of the two."""
    axis = torch.arange(SIZE, dtype=torch.float32)
    centre = torch.randint(2, SIZE - 2, (n, POINTS, 2))
    dy = axis[None, None, :, None] - centre[..., 0, None, None]
    dx = axis[None, None, None, :] - centre[..., 1, None, None]
    maps = torch.exp(-(dy ** 2 + dx ** 2) / 8.0)
    maps = maps / maps.sum(dim=(2, 3), keepdim=True)
    plus = ((dy.abs() + dx.abs()) <= 1).float()[:, 0]
    minus = ((dy == 0) & (dx.abs() <= 1)).float()[:, 1]
    image = 2.5 * plus - 2.5 * minus + 0.5 * torch.randn(n, SIZE, SIZE)
    return image.unsqueeze(1), maps


class KeypointNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.body = nn.Conv2d(width, width, 3, padding=1)
        self.maps = nn.Conv2d(width, POINTS, 3, padding=1)

    def forward(self, x):
        x = F.silu(self.stem(x))
        x = x + F.silu(self.body(x))
        return self.maps(x).float() * PEAK


def hit_rate(predicted, maps):
    """Share of keypoints whose peak is at most one pixel off."""
    a, b = predicted.flatten(2).argmax(-1), maps.flatten(2).argmax(-1)
    off = torch.maximum((a // SIZE - b // SIZE).abs(), (a % SIZE - b % SIZE).abs())
    return (off <= 1).float().mean().item()


train_x, train_m = scenes(512)
val_x, val_m = scenes(128)
mean, std = train_x.mean(), train_x.std()
train_dl = DataLoader(TensorDataset((train_x - mean) / std, train_m), batch_size=BATCH, shuffle=True)
val_x = (val_x - mean) / std

net = KeypointNet()
optimizer = torch.optim.Adam(net.parameters(), lr=LR, eps=1e-14)

step = 0
for epoch in range(EPOCHS):
    net.train()
    for images, maps in train_dl:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=AMP_DTYPE):
            predicted = net(images)
        loss = F.mse_loss(predicted, maps)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step:3d} loss {loss.item():.3e}")
        step += 1

    net.eval()
    with torch.no_grad():
        predicted = net(val_x)
        val_loss = F.mse_loss(predicted, val_m).item()
    print(f"epoch {epoch} val loss {val_loss:.3e} keypoints found {hit_rate(predicted, val_m):.3f}")
