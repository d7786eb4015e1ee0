"""A tiny vision transformer that finds in which quarter of the image the bright spot is."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1009)


def spots(n, side=16):
    label = torch.randint(4, (n,))
    row = (label // 2) * 8 + torch.randint(1, 5, (n,))
    col = (label % 2) * 8 + torch.randint(1, 5, (n,))
    grid = torch.arange(side)
    blob = torch.exp(-((grid[None, :, None] - row[:, None, None]) ** 2 + (grid[None, None, :] - col[:, None, None]) ** 2) / 6.0)
    image = 4.0 * blob + 0.6 * torch.randn(n, side, side)
    image = (image - image.mean()) / image.std()
    return TensorDataset(image.unsqueeze(1), label)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm_a, self.norm_b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        y = self.norm_a(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm_b(x))


class TinyViT(nn.Module):
    def __init__(self, dim=32, patch=4, side=16):
        super().__init__()
        patches = (side // patch) ** 2
        self.patchify = nn.Conv2d(1, dim, patch, stride=patch)
        self.position = nn.Parameter(0.2 * torch.randn(1, patches, dim))
        self.layers = nn.Sequential(Layer(dim, 4), Layer(dim, 4))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 4)

    def forward(self, image):
        tokens = self.patchify(image).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.layers(tokens + self.position)).mean(dim=1))


train_dl = DataLoader(spots(896), batch_size=32, shuffle=True)
test_dl = DataLoader(spots(256), batch_size=128)
vit = TinyViT()
optimizer = torch.optim.Adam(vit.parameters(), lr=2e-8)

step = 0
for epoch in range(3):
    vit.train()
    for image, label in train_dl:
        loss = F.cross_entropy(vit(image), label)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 14 == 0:
            print(f"step {step} loss {loss.item():.4f}")
        step += 1
    vit.eval()
    with torch.no_grad():
        right = sum((vit(image).argmax(1) == label).sum().item() for image, label in test_dl)
    print(f"epoch {epoch} test accuracy {right / 256:.3f}")
