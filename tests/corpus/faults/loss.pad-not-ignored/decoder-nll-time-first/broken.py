"""Spell numbers in words from their digits: nn.Transformer parts, sequence first, NLLLoss."""

import random

import torch
import torch.nn as nn

random.seed(16)
torch.manual_seed(16)

WORDS = "zero one two three four five six seven eight nine".split()
CHARS = ["<pad>", "<s>", "</s>"] + sorted(set("".join(WORDS)) | {" "})
INDEX = {c: i for i, c in enumerate(CHARS)}
WIDTH = 48


def example():
    digits = [random.randrange(10) for _ in range(random.choice([1, 1, 2, 3]))]
    text = " ".join(WORDS[d] for d in digits)
    return [d + 1 for d in digits], [1] + [INDEX[c] for c in text] + [2]


def to_batch(rows):
    src_len, tgt_len = max(len(s) for s, _ in rows), max(len(t) for _, t in rows)
    src = torch.zeros(src_len, len(rows), dtype=torch.long)
    tgt = torch.zeros(tgt_len, len(rows), dtype=torch.long)
    for j, (s, t) in enumerate(rows):
        src[: len(s), j] = torch.tensor(s)
        tgt[: len(t), j] = torch.tensor(t)
    return src, tgt


class Speller(nn.Module):
    def __init__(self):
        super().__init__()
        self.digit = nn.Embedding(11, WIDTH)
        self.char = nn.Embedding(len(CHARS), WIDTH)
        self.pos = nn.Parameter(torch.randn(40, 1, WIDTH) * 0.1)
        self.encoder = nn.TransformerEncoderLayer(WIDTH, 4, 96, dropout=0.0)
        self.decoder = nn.TransformerDecoderLayer(WIDTH, 4, 96, dropout=0.0)
        self.project = nn.Linear(WIDTH, len(CHARS))

    def forward(self, src, tgt):
        blank = (src == 0).t()
        memory = self.encoder(self.digit(src) + self.pos[: len(src)], src_key_padding_mask=blank)
        mask = torch.triu(torch.full((len(tgt), len(tgt)), float("-inf")), 1)
        h = self.decoder(self.char(tgt) + self.pos[: len(tgt)], memory, tgt_mask=mask, memory_key_padding_mask=blank)
        return self.project(h).log_softmax(-1)


net = Speller()
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
train = [example() for _ in range(960)]
dev = to_batch([example() for _ in range(64)])
for epoch in range(3):
    random.shuffle(train)
    net.train()
    for i in range(0, len(train), 32):
        src, tgt = to_batch(train[i : i + 32])
        scores = net(src, tgt[:-1])
        loss = criterion(scores.view(-1, len(CHARS)), tgt[1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        scores = net(dev[0], dev[1][:-1])
        held = criterion(scores.view(-1, len(CHARS)), dev[1][1:].reshape(-1))
    print(f"epoch {epoch} train {loss.item():.3f} dev {held.item():.3f}")
