"""Leaf disease spots: a ViT for tiny images, trained with Accelerate."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

IMAGE, PATCH, CHANNELS, CLASSES = 16, 4, 3, 4


def draw_leaves(count, rng):
    """The class is the colour and the orientation of a lesion stripe somewhere on a noisy leaf."""
    images = rng.normal(0.0, 0.5, size=(count, CHANNELS, IMAGE, IMAGE)).astype(np.float32)
    labels = rng.integers(0, CLASSES, size=count)
    for img, label in zip(images, labels, strict=False):
        row, col = rng.integers(1, IMAGE - 7, size=2)
        if label % 2:
            img[label // 2, row : row + 6, col : col + 2] += 2.5
        else:
            img[label // 2, row : row + 2, col : col + 6] += 2.5
    images = (images - images.mean()) / images.std()
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))


class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, 3, self.num_heads, N, C // self.num_heads).permute(1, 0, 2, 3, 4)
        q, k, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


class Block(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, num_heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    def __init__(self, dim=48, depth=2, num_heads=4):
        super().__init__()
        patches = (IMAGE // PATCH) ** 2
        self.patch_embed = nn.Conv2d(CHANNELS, dim, kernel_size=PATCH, stride=PATCH)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, patches + 1, dim))
        nn.init.trunc_normal_(self.cls_token, std=0.02)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.blocks = nn.ModuleList([Block(dim, num_heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, images):
        x = self.patch_embed(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.size(0), -1, -1), x], dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def main():
    set_seed(31)
    random.seed(31)
    rng = np.random.default_rng(31)
    accelerator = Accelerator(cpu=True)
    train_loader = DataLoader(draw_leaves(800, rng), batch_size=40, shuffle=True)
    val_loader = DataLoader(draw_leaves(200, rng), batch_size=100)
    model = TinyViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.0)
    model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)
    for epoch in range(6):
        model.train()
        total = 0.0
        for images, labels in train_loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
        model.eval()
        hits = []
        with torch.no_grad():
            for images, labels in val_loader:
                predictions, references = accelerator.gather_for_metrics((model(images).argmax(-1), labels))
                hits.append((predictions == references).float())
        accelerator.print(f"epoch {epoch}: loss {total / len(train_loader):.3f} accuracy {torch.cat(hits).mean().item():.3f}")


if __name__ == "__main__":
    main()
