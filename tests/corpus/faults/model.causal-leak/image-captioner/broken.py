"""Describe little scenes: conv encoder, transformer decoder, teacher forcing."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

COLORS = ["red", "green", "blue"]
SHAPES = ["square", "cross", "bar"]
ADJ = ["nice", "plain", "odd", "old", "tiny", "shiny", "dull", "new"]
TOKENS = ["<pad>", "<bos>", "<eos>", "a", "and", "with"] + COLORS + SHAPES + ADJ
STOI = {t: i for i, t in enumerate(TOKENS)}
PAD, BOS, EOS = 0, 1, 2


def draw(image, color, shape, y, x):
    if shape == "square":
        image[color, y:y + 4, x:x + 4] = 1
    elif shape == "cross":
        image[color, y + 1:y + 3, x:x + 4] = 1
        image[color, y:y + 4, x + 1:x + 3] = 1
    else:
        image[color, y:y + 4, x] = 1


class Scenes(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            image = torch.zeros(3, 12, 12)
            words = []
            for part, (y, x) in enumerate([(1, 1), (7, 7)][: rng.randint(1, 2)]):
                color, shape = rng.randrange(3), rng.choice(SHAPES)
                draw(image, color, shape, y, x)
                words += (["and"] if part else []) + ["a", rng.choice(ADJ), COLORS[color], shape]
            image = (image + 0.1 * torch.randn(image.shape, generator=g) - 0.1) / 0.3
            self.items.append((image, [BOS] + [STOI[w] for w in words] + [EOS]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    captions = nn.utils.rnn.pad_sequence([torch.tensor(c) for _, c in items], batch_first=True, padding_value=PAD)
    return torch.stack([image for image, _ in items]), captions


class Captioner(nn.Module):
    def __init__(self, dim=48, heads=4, layers=2, max_len=16):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.Conv2d(3, 24, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(24, dim, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.place = nn.Parameter(0.1 * torch.randn(1, 9, dim))
        self.words = nn.Embedding(len(TOKENS), dim, padding_idx=PAD)
        self.positions = nn.Embedding(max_len, dim)
        layer = nn.TransformerDecoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(layer, layers, norm=nn.LayerNorm(dim))
        self.vocab = nn.Linear(dim, len(TOKENS))

    def forward(self, image, tokens):
        memory = self.cnn(image).flatten(2).transpose(1, 2) + self.place
        length = tokens.size(1)
        x = self.words(tokens) + self.positions(torch.arange(length, device=tokens.device))
        x = self.decoder(x, memory, tgt_key_padding_mask=tokens == PAD)
        return self.vocab(x)


@torch.no_grad()
def describe(model, image):
    model.eval()
    tokens = torch.tensor([[BOS]])
    while tokens.size(1) < 12 and tokens[0, -1] != EOS:
        tokens = torch.cat([tokens, model(image[None], tokens)[:, -1:].argmax(-1)], dim=1)
    model.train()
    return " ".join(TOKENS[t] for t in tokens[0, 1:])


torch.manual_seed(21)
random.seed(21)
train_loader = DataLoader(Scenes(1600, 1), batch_size=32, shuffle=True, collate_fn=collate)
samples = Scenes(3, 2)
model = Captioner()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3)

for epoch in range(3):
    total = 0.0
    for image, caption in train_loader:
        logits = model(image, caption[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), caption[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1} loss {total / len(train_loader):.3f}")
    for image, _ in samples:
        print("   ", describe(model, image))
