"""Machine-state classification from vibration logs; attention stays inside chunks of eight samples, logs have any length."""
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

CHUNK = 8
CHANNELS = 6


def synth_logs(n, seed):
    rng = np.random.RandomState(seed)
    logs = []
    for _ in range(n):
        state = rng.randint(4)
        length = rng.randint(34, 41) if rng.rand() < 0.985 else rng.randint(17, 30)
        t = np.arange(length)[:, None]
        phase = rng.rand(1, CHANNELS) * 6.28
        x = np.sin(t * (0.35 + 0.3 * state) + phase) + 0.5 * rng.randn(length, CHANNELS)
        logs.append((torch.tensor(x, dtype=torch.float32), state))
    return logs


def collate(batch):
    xs, ys = zip(*batch)
    lengths = torch.tensor([len(x) for x in xs])
    x = nn.utils.rnn.pad_sequence(xs, batch_first=True)
    short = -x.size(1) % CHUNK
    return F.pad(x, (0, 0, 0, short)), lengths, torch.tensor(ys)


class ChunkAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.dim = heads, dim
        self.in_proj = nn.Linear(dim, dim * 3)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x, valid):
        b, t, d = x.shape
        n = t // CHUNK
        qkv = self.in_proj(x).view(b, n, CHUNK, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5)
        keys = valid.view(b, n, 1, 1, CHUNK)
        itself = torch.eye(CHUNK, dtype=torch.bool, device=x.device)
        att = torch.matmul(q, k.transpose(-2, -1)) * (d // self.heads) ** -0.5
        att = att.masked_fill(~(keys | itself), float("-inf"))
        y = att.softmax(dim=-1) @ v
        return self.out_proj(y.transpose(2, 3).reshape(b, t, d))


class StateNet(nn.Module):
    def __init__(self, dim=32, heads=2, depth=2):
        super().__init__()
        self.stem = nn.Conv1d(CHANNELS, dim, 3, padding=1)
        self.slot = nn.Parameter(0.02 * torch.randn(CHUNK, dim))
        self.att = nn.ModuleList([ChunkAttention(dim, heads) for _ in range(depth)])
        self.mlp = nn.ModuleList(
            [nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)) for _ in range(depth)]
        )
        self.norm = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.classify = nn.Linear(dim, 4)

    def forward(self, x, lengths):
        valid = torch.arange(x.size(1), device=x.device) < lengths[:, None]
        h = self.stem(x.transpose(1, 2)).transpose(1, 2)
        h = h + self.slot.repeat(x.size(1) // CHUNK, 1)
        for att, mlp, norm in zip(self.att, self.mlp, self.norm):
            h = h + att(norm(h), valid)
            h = h + mlp(h)
        weights = valid.unsqueeze(-1).float()
        return self.classify((h * weights).sum(1) / weights.sum(1))


def run():
    seed = 8
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    train_loader = DataLoader(synth_logs(768, seed), batch_size=16, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(synth_logs(128, seed + 1), batch_size=32, collate_fn=collate)
    net = StateNet()
    optim = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(2):
        net.train()
        history = []
        for x, lengths, y in train_loader:
            loss = F.cross_entropy(net(x, lengths), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
            history.append(loss.item())
        net.eval()
        hits = 0
        with torch.inference_mode():
            for x, lengths, y in test_loader:
                hits += (net(x, lengths).argmax(1) == y).sum().item()
        print(f"epoch {epoch}: first {history[0]:.3f} last {np.mean(history[-5:]):.3f} test {hits / 128:.3f}")


run()
