"""A pointer-generator language model on log lines: runs of equal tokens, padded, trained on mixed probabilities."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS, VOCAB = 0, 1, 2, 40

random.seed(31)
np.random.seed(31)
torch.manual_seed(31)


def log_line(rng):
    """Codes tend to repeat; when one ends, a fixed successor (mostly) follows."""
    code, line = int(rng.integers(3, VOCAB)), [BOS]
    for _ in range(int(rng.integers(8, 26))):
        line.append(code)
        if rng.random() > 0.6:
            code = 3 + (code * 5 + 2) % (VOCAB - 3) if rng.random() < 0.9 else int(rng.integers(3, VOCAB))
    return [*line, EOS]


def batches(lines, size):
    random.shuffle(lines)
    for start in range(0, len(lines), size):
        chunk = lines[start : start + size]
        width = max(map(len, chunk))
        ids = torch.full((len(chunk), width), PAD)
        for row, line in enumerate(chunk):
            ids[row, : len(line)] = torch.tensor(line)
        yield ids[:, :-1], ids[:, 1:]


class PointerGenerator(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.query = nn.Linear(dim, dim)
        self.vocabulary = nn.Linear(dim, VOCAB)
        self.gate = nn.Linear(dim, 1)

    def forward(self, ids):
        h, _ = self.rnn(self.embed(ids))
        scores = self.query(h) @ h.transpose(1, 2) / h.size(-1) ** 0.5
        future = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1)
        attention = scores.masked_fill(future, float("-inf")).softmax(-1)
        copied = attention @ F.one_hot(ids, VOCAB).float()
        generated = self.vocabulary(h).softmax(-1)
        share = torch.sigmoid(self.gate(h))
        return share * generated + (1 - share) * copied


def nll_sum(model, inputs, targets):
    chosen = model(inputs).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    counted = targets.ne(PAD)
    return -(torch.log(chosen + 1e-8) * counted).sum(), counted.sum()


rng = np.random.default_rng(31)
train_lines, valid_lines = [log_line(rng) for _ in range(960)], [log_line(rng) for _ in range(128)]
model = PointerGenerator()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

for epoch in range(4):
    model.train()
    total = tokens = 0.0
    for inputs, targets in batches(train_lines, 32):
        loss, count = nll_sum(model, inputs, targets)
        optimizer.zero_grad()
        (loss / count).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total, tokens = total + loss.item(), tokens + count.item()
    model.eval()
    with torch.no_grad():
        parts = [nll_sum(model, a, b) for a, b in batches(valid_lines, 64)]
    valid = sum(p[0].item() for p in parts) / sum(p[1].item() for p in parts)
    print(f"epoch {epoch}: nll per token {total / tokens:.3f}, held out {valid:.3f}")
