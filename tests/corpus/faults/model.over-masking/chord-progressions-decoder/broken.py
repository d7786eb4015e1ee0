# Decoder-only language model over chord progressions, attention written out with einsum.
import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 11
torch.manual_seed(SEED)
np.random.seed(SEED)
random.seed(SEED)

PAD, BOS, EOS = 0, 1, 2
NUM_CHORDS = 14
VOCAB = NUM_CHORDS + 3


class Progressions(Dataset):
    """Songs walk round a fixed circle of chords, with the odd jump."""

    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.songs = []
        for _ in range(count):
            chord = rng.randrange(NUM_CHORDS)
            stride = rng.choice([3, 5])
            song = [BOS]
            for _ in range(rng.randint(6, 18)):
                song.append(3 + chord)
                chord = (chord + stride) % NUM_CHORDS if rng.random() < 0.9 else rng.randrange(NUM_CHORDS)
            self.songs.append(song + [EOS])

    def __len__(self):
        return len(self.songs)

    def __getitem__(self, index):
        return torch.tensor(self.songs[index])


def collate(songs):
    padded = nn.utils.rnn.pad_sequence(songs, batch_first=True, padding_value=PAD)
    return padded[:, :-1], padded[:, 1:]


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.head_width = width // heads
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x, allowed):
        b, t, _ = x.shape
        q, k, v = self.to_qkv(x).view(b, t, 3, self.heads, self.head_width).unbind(2)
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(self.head_width)
        scores = scores.masked_fill(~allowed[:, None], float("-inf"))
        mixed = torch.einsum("bhij,bjhd->bihd", scores.softmax(dim=-1), v)
        return self.out(mixed.reshape(b, t, -1))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.ff = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))

    def forward(self, x, allowed):
        x = x + self.attention(self.ln1(x), allowed)
        return x + self.ff(self.ln2(x))


class ChordModel(nn.Module):
    def __init__(self, width=48, heads=4, depth=2, context=24):
        super().__init__()
        self.chords = nn.Embedding(VOCAB, width, padding_idx=PAD)
        self.places = nn.Embedding(context, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(depth)])
        self.final = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCAB)

    def forward(self, ids):
        steps = ids.size(1)
        real = ids != PAD
        causal = torch.ones(steps, steps, dtype=torch.bool, device=ids.device).tril()
        allowed = causal[None] & real[:, None, :] & real[:, :, None]
        x = self.chords(ids) + self.places(torch.arange(steps, device=ids.device))
        for layer in self.layers:
            x = layer(x, allowed)
        return self.head(self.final(x))


train_loader = DataLoader(Progressions(768, 1), batch_size=32, shuffle=True, collate_fn=collate)
valid_loader = DataLoader(Progressions(128, 2), batch_size=32, collate_fn=collate)

model = ChordModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)


def loss_of(inputs, targets):
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), ignore_index=PAD)


for epoch in range(4):
    model.train()
    running = []
    for inputs, targets in train_loader:
        loss = loss_of(inputs, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running.append(loss.item())
    model.eval()
    with torch.no_grad():
        valid = float(np.mean([loss_of(i, t).item() for i, t in valid_loader]))
    print(f"epoch {epoch + 1} train {np.mean(running):.4f} valid {valid:.4f}")
