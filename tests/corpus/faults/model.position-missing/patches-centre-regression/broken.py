"""Locate a bright spot: attention over image patches regresses its coordinates."""
import torch
import torch.nn as nn

torch.manual_seed(77)
SIZE, PATCH, DIM = 20, 4, 48
GRID = SIZE // PATCH


def spots(n):
    """Gaussian spot on noise; target is its centre, scaled to [-1, 1]."""
    centre = torch.rand(n, 2) * (SIZE - 5) + 2
    axis = torch.arange(SIZE, dtype=torch.float32)
    dy = (axis[None, :, None] - centre[:, 0, None, None]) ** 2
    dx = (axis[None, None, :] - centre[:, 1, None, None]) ** 2
    image = 3.0 * torch.exp(-(dy + dx) / 6.0) + 0.2 * torch.randn(n, SIZE, SIZE)
    return image[:, None], centre / (SIZE / 2) - 1.0


train_images, train_centres = spots(1000)
test_images, test_centres = spots(200)
mean, std = train_images.mean(), train_images.std()
train_images, test_images = (train_images - mean) / std, (test_images - mean) / std


class Locator(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_patches = nn.Unfold(PATCH, stride=PATCH)
        self.lift = nn.Linear(PATCH * PATCH, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.attn = nn.MultiheadAttention(DIM, 4, batch_first=True)
        self.norm_ff = nn.LayerNorm(DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 96), nn.GELU(), nn.Linear(96, DIM))
        self.head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 2))

    def forward(self, image):
        x = self.lift(self.to_patches(image).transpose(1, 2))
        h = self.norm(x)
        x = x + self.attn(h, h, h)[0]
        x = x + self.ff(self.norm_ff(x))
        return self.head(x.mean(dim=1))


net = Locator()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
mse = nn.MSELoss()
for epoch in range(4):
    net.train()
    order = torch.randperm(len(train_images))
    total = 0.0
    for idx in order.split(40):
        optimizer.zero_grad()
        loss = mse(net(train_images[idx]), train_centres[idx])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    net.eval()
    with torch.no_grad():
        off = (net(test_images) - test_centres).norm(dim=1).mean() * SIZE / 2
    print(f"epoch {epoch}: train mse {total / len(order):.4f}, test error {off:.2f} pixels")
