"""DETR-flavoured toy: find the centre of the bright square on a noisy 32x32 image."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.images = rng.normal(0.0, 0.3, size=(n, 1, 32, 32)).astype(np.float32)
        self.centres = np.zeros((n, 2), dtype=np.float32)
        for i in range(n):
            cx, cy = rng.integers(3, 29, size=2)
            self.images[i, 0, cy - 3 : cy + 3, cx - 3 : cx + 3] += 2.0
            self.centres[i] = cx / 32, cy / 32
        self.images = (self.images - self.images.mean()) / self.images.std()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.from_numpy(self.images[i]), torch.from_numpy(self.centres[i])


class LearnedPositions2d(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.col_embed = nn.Embedding(size, dim // 2)
        self.row_embed = nn.Embedding(size, dim // 2)
        nn.init.normal_(self.col_embed.weight, std=0.7)
        nn.init.normal_(self.row_embed.weight, std=0.7)

    def forward(self, fmap):
        h, w = fmap.shape[-2:]
        x_emb = self.col_embed(torch.arange(w, device=fmap.device))
        y_emb = self.row_embed(torch.arange(h, device=fmap.device))
        pos = torch.cat(
            [
                x_emb.unsqueeze(0).repeat(h, 1, 1),
                y_emb.unsqueeze(1).repeat(1, w, 1),
            ],
            dim=-1,
        )
        return pos.permute(2, 0, 1).unsqueeze(0)


class SquareFinder(nn.Module):
    def __init__(self, dim=48, heads=4):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 24, 2, stride=2),
            nn.GroupNorm(4, 24),
            nn.ReLU(),
            nn.Conv2d(24, dim, 2, stride=2),
        )
        self.position = LearnedPositions2d(8, dim)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True),
            1,
            norm=nn.LayerNorm(dim),
            enable_nested_tensor=False,
        )
        self.box_head = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 2))

    def forward(self, images):
        fmap = self.backbone(images)
        tokens = (fmap + self.position(fmap)).flatten(2).transpose(1, 2)
        memory = self.encoder(tokens)
        return self.box_head(memory.amax(dim=1)).sigmoid()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--batch", type=int, default=48)
    opts = ap.parse_args()

    torch.manual_seed(0)
    np.random.seed(0)
    train = DataLoader(Squares(960, seed=1), batch_size=opts.batch, shuffle=True)
    val = DataLoader(Squares(160, seed=2), batch_size=80)
    net = SquareFinder()
    opt = torch.optim.Adam(net.parameters(), lr=opts.lr)
    for epoch in range(opts.epochs):
        net.train()
        seen, total = 0, 0.0
        for images, centres in train:
            loss = F.l1_loss(net(images), centres)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            total += loss.item() * len(images)
            seen += len(images)
        net.eval()
        with torch.no_grad():
            error = torch.cat([(net(images) - centres).abs() for images, centres in val]).mean(0) * 32
        print(f"epoch {epoch} l1 {total / seen:.4f} val px error x {error[0]:.2f} y {error[1]:.2f}")


if __name__ == "__main__":
    main()
