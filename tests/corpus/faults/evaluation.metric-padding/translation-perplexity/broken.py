"""Numbers to words, a small nn.Transformer; perplexity on held-out pairs after each epoch."""
import math
import random

import torch
from torch import nn

PAD, START, STOP = 0, 1, 2
DIGITS = {str(d): 3 + d for d in range(10)}
WORDS = "zero one two three four five six seven eight nine".split()
SPELLED = {w: 3 + i for i, w in enumerate(WORDS)}


def pair():
    number = [random.choice("0123456789") for _ in range(random.choice([1, 2, 2, 3, 9]))]
    return [DIGITS[c] for c in number], [START, *(SPELLED[WORDS[int(c)]] for c in number), STOP]


def pad(rows):
    width = max(len(r) for r in rows)
    return torch.tensor([r + [PAD] * (width - len(r)) for r in rows])


def batch(pairs):
    return pad([s for s, _ in pairs]), pad([t for _, t in pairs])


class Speller(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.source, self.target = nn.Embedding(13, d), nn.Embedding(13, d)
        self.place = nn.Parameter(torch.randn(16, d) * 0.1)
        self.body = nn.Transformer(d, 2, 1, 1, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(d, 13)

    def forward(self, source, target):
        ahead = torch.ones(target.size(1), target.size(1), dtype=torch.bool).triu(1)
        h = self.body(
            self.source(source) + self.place[: source.size(1)], self.target(target) + self.place[: target.size(1)], tgt_mask=ahead,
            src_key_padding_mask=source == PAD, tgt_key_padding_mask=target == PAD, memory_key_padding_mask=source == PAD,
        )
        return self.out(h)


def perplexity(model, pairs):
    model.eval()
    total = count = 0
    with torch.no_grad():
        for i in range(0, len(pairs), 40):
            source, target = batch(pairs[i : i + 40])
            logits = model(source, target[:, :-1])
            gold = target[:, 1:]
            nll = -logits.log_softmax(-1).gather(2, gold.unsqueeze(2)).squeeze(2)
            total += nll.sum().item()
            count += nll.numel()
    return math.exp(total / count)


random.seed(45)
torch.manual_seed(45)
train, held_out = [pair() for _ in range(1600)], [pair() for _ in range(200)]
model = Speller()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(3):
    random.shuffle(train)
    model.train()
    for i in range(0, len(train), 40):
        source, target = batch(train[i : i + 40])
        loss = criterion(model(source, target[:, :-1]).transpose(1, 2), target[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f} perplexity {perplexity(model, held_out):.3f}")
