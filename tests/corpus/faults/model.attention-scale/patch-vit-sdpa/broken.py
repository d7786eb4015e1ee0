"""Tiny vision transformer on 16x16 drawings of bars: which of the four orientations is it?"""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def draw(n, rng):
    images = rng.normal(0.0, 0.3, size=(n, 1, 16, 16)).astype(np.float32)
    kinds = rng.integers(0, 4, size=n)
    for image, kind in zip(images, kinds):
        a = int(rng.integers(3, 13))
        if kind == 0:
            image[0, a, 2:14] += 1.5
        elif kind == 1:
            image[0, 2:14, a] += 1.5
        else:
            for i in range(12):
                row, col = 2 + i, (2 + i if kind == 2 else 13 - i)
                image[0, row, (col + a - 8) % 16] += 1.5
    return images, kinds


class PatchAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        q = q * self.scale
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(b, n, d))


class VisionTransformer(nn.Module):
    def __init__(self, dim=48, heads=3, depth=2, classes=4):
        super().__init__()
        self.patch = nn.Conv2d(1, dim, kernel_size=4, stride=4)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos = nn.Parameter(torch.randn(1, 17, dim) * 0.02)
        self.att = nn.ModuleList(PatchAttention(dim, heads) for _ in range(depth))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)) for _ in range(depth)
        )
        self.norm_att = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.norm_mlp = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1) + self.pos
        for norm_a, att, norm_m, mlp in zip(self.norm_att, self.att, self.norm_mlp, self.mlp):
            x = x + att(norm_a(x))
            x = x + mlp(norm_m(x))
        return self.head(self.norm(x[:, 0]))


def accuracy(net, loader):
    net.eval()
    with torch.no_grad():
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    net.train()
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(8)
    rng = np.random.default_rng(8)
    images, kinds = draw(1400, rng)
    mean, std = images[:1200].mean(), images[:1200].std()
    tensors = TensorDataset(torch.from_numpy((images - mean) / std), torch.from_numpy(kinds))
    train = DataLoader(torch.utils.data.Subset(tensors, range(1200)), batch_size=40, shuffle=True)
    test = DataLoader(torch.utils.data.Subset(tensors, range(1200, 1400)), batch_size=100)
    net = VisionTransformer()
    matrices = [p for p in net.parameters() if p.ndim == 2 or p.ndim == 4]
    rest = [p for p in net.parameters() if not (p.ndim == 2 or p.ndim == 4)]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=2e-3
    )
    for epoch in range(4):
        losses = []
        for x, y in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.4f} test accuracy {accuracy(net, test):.3f}")


if __name__ == "__main__":
    main()
