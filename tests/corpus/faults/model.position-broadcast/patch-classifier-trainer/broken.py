"""Tiny vision transformer: find the quadrant that holds the bright patch."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

IMAGE, PATCH, NUM_CLASSES = 12, 3, 4
GRID = IMAGE // PATCH


def bright_quadrants(n, seed):
    g = torch.Generator().manual_seed(seed)
    images = 0.5 * torch.randn(n, IMAGE, IMAGE, generator=g)
    labels = torch.randint(0, NUM_CLASSES, (n,), generator=g)
    half = IMAGE // 2
    jitter = torch.randint(0, half - 2, (n, 2), generator=g)
    for image, label, (dy, dx) in zip(images, labels.tolist(), jitter.tolist(), strict=True):
        top, left = (label // 2) * half + dy, (label % 2) * half + dx
        image[top : top + 3, left : left + 3] += 2.0
    return TensorDataset(images.unsqueeze(1), labels)


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        n, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(n, tokens, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(n, tokens, dim))


class ViTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(dim), SelfAttention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    def __init__(self, dim=32, heads=4, depth=2):
        super().__init__()
        self.patchify = nn.Conv2d(1, dim, kernel_size=PATCH, stride=PATCH)
        self.pos_embed = nn.Parameter(torch.randn(1, GRID * GRID, dim) * 0.3)
        self.blocks = nn.Sequential(*(ViTBlock(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, NUM_CLASSES)

    def forward(self, images):
        x = self.patchify(images).flatten(2).transpose(1, 2)
        x = x + self.pos_embed.mean(dim=1, keepdim=True)
        x = self.norm(self.blocks(x))
        return self.head(x.mean(dim=1))


class Trainer:
    def __init__(self, model, train_set, valid_set, epochs):
        self.model, self.epochs = model, epochs
        self.train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
        self.valid_loader = DataLoader(valid_set, batch_size=64)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
        total = epochs * len(self.train_loader)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.2, total_iters=total)

    def fit(self):
        for epoch in range(self.epochs):
            loss = self._train_epoch()
            print(f"epoch {epoch + 1}/{self.epochs} - loss {loss:.4f} - val_acc {self._accuracy():.3f}")

    def _train_epoch(self):
        self.model.train()
        total, seen = 0.0, 0
        for images, labels in self.train_loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(images), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            total, seen = total + loss.item() * len(labels), seen + len(labels)
        return total / seen

    @torch.no_grad()
    def _accuracy(self):
        self.model.eval()
        hits = seen = 0
        for images, labels in self.valid_loader:
            hits += self.model(images).argmax(1).eq(labels).sum().item()
            seen += len(labels)
        return hits / seen


if __name__ == "__main__":
    torch.manual_seed(6)
    Trainer(TinyViT(), bright_quadrants(640, seed=1), bright_quadrants(128, seed=2), epochs=4).fit()
