"""Pixel masks of cracks: encoder-decoder network and binary cross-entropy."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(83)


def cracks(n, side=20):
    img = 0.6 * torch.randn(n, 1, side, side)
    mask = torch.zeros_like(img)
    for i in range(n):
        r, slope = torch.randint(3, side - 3, (1,)).item(), torch.rand(1).item() - 0.5
        for c in range(side):
            row = min(side - 2, max(1, int(r + slope * c)))
            mask[i, 0, row : row + 2, c] = 1.0
    img = img + 1.5 * mask
    return (img - img.mean()) / img.std(), mask


class CrackNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.GroupNorm(3, c), nn.SiLU())
        self.down2 = nn.Sequential(nn.Conv2d(c, 2 * c, 3, padding=1, stride=2), nn.GroupNorm(4, 2 * c), nn.SiLU())
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(2 * c, c, 3, padding=1), nn.GroupNorm(3, c), nn.SiLU())
        self.mask = nn.Conv2d(2 * c, 1, 3, padding=1)

    def forward(self, x):
        a = self.down1(x)
        b = self.up(self.down2(a))
        return self.mask(torch.cat([a, b], 1)).sigmoid()


net = CrackNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
loader = DataLoader(TensorDataset(*cracks(256)), batch_size=16, shuffle=True)
images, masks = cracks(48)
for epoch in range(4):
    net.train()
    for image, mask in loader:
        optimizer.zero_grad()
        output = net(image)
        loss = criterion(output, mask)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        output = net(images)
        print(f"epoch {epoch}: train {loss.item():.4f} valid {criterion(output, masks).item():.4f}")
