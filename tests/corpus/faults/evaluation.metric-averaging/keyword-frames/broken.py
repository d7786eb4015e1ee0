# Keyword recognition from filter-bank frames. Clips of one length go together so that nothing needs padding.
import random
from collections import defaultdict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 5
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

N_WORDS, N_BANDS = 8, 12
LENGTHS = [10, 14, 18, 22]
rng = np.random.RandomState(100)
patterns = rng.randn(N_WORDS, 3, N_BANDS).astype(np.float32)


def clip(rng, length):
    word = rng.randint(N_WORDS)
    frames = rng.randn(length, N_BANDS).astype(np.float32) * (0.6 + 0.07 * (length - 10))
    start = rng.randint(0, length - 9)
    for part in range(3):
        frames[start + 3 * part : start + 3 * part + 3] += patterns[word, part]
    return frames / 1.3, word


def by_length(rng, counts):
    table = defaultdict(list)
    for length, count in zip(LENGTHS, counts):
        for _ in range(count):
            table[length].append(clip(rng, length))
    return table


def batches(table, size, shuffle):
    out = []
    for length, clips in table.items():
        clips = random.sample(clips, len(clips)) if shuffle else clips
        for i in range(0, len(clips), size):
            part = clips[i : i + size]
            out.append((torch.from_numpy(np.stack([c[0] for c in part])), torch.tensor([c[1] for c in part])))
    if shuffle:
        random.shuffle(out)
    return out


class KeywordNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(N_BANDS, 32, 3, padding=1)
        self.conv2 = nn.Conv1d(32, 48, 3, padding=1)
        self.head = nn.Linear(48, N_WORDS)

    def forward(self, frames):
        x = F.relu(self.conv1(frames.transpose(1, 2)))
        x = F.relu(self.conv2(x))
        return self.head(x.amax(dim=2))


train_table = by_length(np.random.RandomState(1), [220, 200, 180, 160])
dev_table = by_length(np.random.RandomState(2), [120, 70, 21, 3])

net = KeywordNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(6):
    net.train()
    losses = []
    for frames, words in batches(train_table, 32, shuffle=True):
        opt.zero_grad()
        loss = F.cross_entropy(net(frames), words)
        loss.backward()
        opt.step()
        losses.append(loss.item())

    net.eval()
    scores = []
    with torch.no_grad():
        for frames, words in batches(dev_table, 32, shuffle=False):
            right = net(frames).argmax(dim=1) == words
            scores.append(right.float().mean().item())
    print(f"epoch {epoch}  loss {np.mean(losses):.3f}  dev accuracy {np.mean(scores):.4f}")
