"""Keyword spotting on log-mel frames. Batches are time-first, (frames, clips, mels), zero padded to a fixed window."""
import random

import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

WINDOW = 44
MELS = 12
KEYWORDS = 5


class Keywords(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        templates = np.random.default_rng(4).normal(size=(KEYWORDS, 9, MELS)).astype(np.float32)
        self.items = []
        for _ in range(count):
            label = int(rng.integers(KEYWORDS))
            frames = int(rng.integers(14, 41))
            clip = rng.normal(scale=0.6, size=(frames, MELS)).astype(np.float32)
            start = int(rng.integers(0, frames - 9))
            clip[start : start + 9] += templates[label]
            self.items.append((torch.from_numpy(clip), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def pad_batch(items):
    feats = torch.zeros(WINDOW, len(items), MELS)
    lens = torch.tensor([clip.size(0) for clip, _ in items])
    for i, (clip, _) in enumerate(items):
        feats[: clip.size(0), i] = clip
    return feats, lens, torch.tensor([label for _, label in items])


def make_pad_mask(lens, maxlen):
    steps = torch.arange(maxlen, device=lens.device)
    return steps.unsqueeze(0) >= lens.unsqueeze(1)


def make_non_pad_mask(lens, maxlen):
    return ~make_pad_mask(lens, maxlen)


class FrameEncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm_att = nn.LayerNorm(dim)
        self.norm_conv = nn.LayerNorm(dim)
        self.norm_ff = nn.LayerNorm(dim)
        self.att = nn.MultiheadAttention(dim, heads)
        self.conv = nn.Conv1d(dim, dim, 5, padding=2, groups=dim)
        self.point = nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))

    def forward(self, x, lens):
        h = self.norm_att(x)
        mask = make_pad_mask(lens, x.size(0))
        h, _ = self.att(h, h, h, key_padding_mask=mask, need_weights=False)
        x = x + h
        h = self.norm_conv(x) * make_non_pad_mask(lens, x.size(0)).t().unsqueeze(-1)
        h = self.conv(h.permute(1, 2, 0)).permute(2, 0, 1)
        x = x + self.point(torch.nn.functional.silu(h))
        return x + self.ff(self.norm_ff(x))


class Spotter(nn.Module):
    def __init__(self, dim=40, heads=4, layers=2):
        super().__init__()
        self.proj = nn.Linear(MELS, dim)
        self.pos = nn.Parameter(torch.randn(WINDOW, 1, dim) * 0.02)
        self.layers = nn.ModuleList(FrameEncoderLayer(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, KEYWORDS)

    def forward(self, feats, lens):
        x = self.proj(feats) + self.pos
        for layer in self.layers:
            x = layer(x, lens)
        keep = make_non_pad_mask(lens, x.size(0)).t().unsqueeze(-1).to(x.dtype)
        pooled = (self.norm(x) * keep).sum(0) / keep.sum(0)
        return self.out(pooled)


def evaluate(model, loader):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for feats, lens, labels in loader:
            right += (model(feats, lens).argmax(-1) == labels).sum().item()
            seen += labels.numel()
    model.train()
    return right / seen


def main():
    random.seed(11)
    np.random.seed(11)
    torch.manual_seed(11)
    train = DataLoader(Keywords(640, 1), batch_size=32, shuffle=True, collate_fn=pad_batch)
    dev = DataLoader(Keywords(128, 2), batch_size=64, collate_fn=pad_batch)
    model = Spotter()
    criterion = nn.CrossEntropyLoss()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    sched = LambdaLR(opt, lambda i: min(1.0, (i + 1) / 10))
    for epoch in range(4):
        total = 0.0
        for feats, lens, labels in train:
            opt.zero_grad()
            loss = criterion(model(feats, lens), labels)
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(train):.4f} dev acc {evaluate(model, dev):.3f}")


if __name__ == "__main__":
    main()
