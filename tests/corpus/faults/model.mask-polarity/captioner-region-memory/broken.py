"""Caption synthetic scenes: a set of regions goes through nn.TransformerDecoder as memory."""

import math
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(11)
np.random.seed(11)
torch.manual_seed(11)

KINDS, BOS, EOS, PAD = 12, 12, 13, 14
VOCAB = 15
MAX_REGIONS = 9


class Scenes(Dataset):
    """Every region shows one kind of object; the caption names the kinds present, in order of size."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.protos = np.random.default_rng(0).normal(size=(KINDS, 16)).astype("float32")
        self.rows = []
        for _ in range(n):
            k = int(rng.integers(2, 6))
            kinds = rng.choice(KINDS, k, replace=False)
            sizes = rng.permutation(k) + 1
            feats = self.protos[kinds] + 0.1 * rng.normal(size=(k, 16)).astype("float32")
            feats = np.concatenate([feats, sizes[:, None] / 5.0], 1).astype("float32")
            order = kinds[np.argsort(-sizes)]
            self.rows.append((torch.from_numpy(feats), torch.from_numpy(order.astype("int64"))))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    b = len(rows)
    regions = torch.zeros(b, MAX_REGIONS, 17)
    missing = torch.zeros(b, MAX_REGIONS, dtype=torch.bool)
    words = torch.full((b, 7), PAD)
    for i, (feats, order) in enumerate(rows):
        regions[i, : len(feats)] = feats
        missing[i, : len(feats)] = True
        words[i, : len(order) + 2] = torch.cat([torch.tensor([BOS]), order, torch.tensor([EOS])])
    return regions, missing, words


class Captioner(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.lift = nn.Linear(17, width)
        self.words = nn.Embedding(VOCAB, width, padding_idx=PAD)
        self.place = nn.Parameter(torch.randn(1, 6, width) * 0.02)
        layer = nn.TransformerDecoderLayer(width, 4, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2, norm=nn.LayerNorm(width))
        self.out = nn.Linear(width, VOCAB)

    def forward(self, regions, missing, words):
        memory = self.lift(regions)
        h = self.words(words) * math.sqrt(48) * 0.2 + self.place[:, : words.size(1)]
        causal = nn.Transformer.generate_square_subsequent_mask(words.size(1), dtype=torch.bool)
        h = self.decoder(h, memory, tgt_mask=causal, memory_key_padding_mask=missing)
        return self.out(h)


train = DataLoader(Scenes(640, 1), batch_size=32, shuffle=True, collate_fn=collate)
held = DataLoader(Scenes(96, 2), batch_size=48, collate_fn=collate)
net = Captioner()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)

for epoch in range(4):
    net.train()
    total = 0.0
    for regions, missing, words in train:
        logits = net(regions, missing, words[:, :-1])
        loss = loss_fn(logits.flatten(0, 1), words[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        seen = [loss_fn(net(r, m, w[:, :-1]).flatten(0, 1), w[:, 1:].flatten()).item() for r, m, w in held]
    print(f"epoch {epoch} train {total / len(train):.3f} held-out {sum(seen) / len(seen):.3f}")
