"""Word-level LSTM language model in the old style: plain SGD at a high rate, hard clipping, the rate divided when validation stalls."""

import random

import numpy as np
import torch
import torch.nn as nn

random.seed(1)
np.random.seed(1)
torch.manual_seed(1)

VOCAB, BATCH, UNROLL = 40, 16, 20


def babble(length, rng):
    chain = np.random.default_rng(7).dirichlet(np.full(VOCAB, 0.06), VOCAB)
    word, out = 0, []
    for _ in range(length):
        word = rng.choice(VOCAB, p=chain[word])
        out.append(word)
    return torch.tensor(out)


def to_columns(stream):
    rows = len(stream) // BATCH
    return stream[: rows * BATCH].view(BATCH, rows).t().contiguous()


class WordLSTM(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.lstm = nn.LSTM(dim, dim)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(dim, VOCAB)
        for p in self.parameters():
            nn.init.uniform_(p, -0.1, 0.1)

    def forward(self, ids, state):
        h, state = self.lstm(self.drop(self.embed(ids)), state)
        return self.out(self.drop(h)), state


def spans(columns):
    for i in range(0, len(columns) - 1, UNROLL):
        n = min(UNROLL, len(columns) - 1 - i)
        yield columns[i : i + n], columns[i + 1 : i + 1 + n]


def evaluate(model, columns):
    model.eval()
    total, state = 0.0, None
    with torch.no_grad():
        for ids, nxt in spans(columns):
            logits, state = model(ids, state)
            total += nn.functional.cross_entropy(logits.view(-1, VOCAB), nxt.reshape(-1), reduction="sum").item()
    return total / (BATCH * (len(columns) - 1))


rng = np.random.default_rng(2)
train_columns, valid_columns = to_columns(babble(8000, rng)), to_columns(babble(1600, rng))
model = WordLSTM()
optimizer = torch.optim.SGD(model.parameters(), lr=8.0)
best = float("inf")

for epoch in range(5):
    model.train()
    state, losses = None, []
    for ids, nxt in spans(train_columns):
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(ids, state)
        loss = nn.functional.cross_entropy(logits.view(-1, VOCAB), nxt.reshape(-1))
        for p in model.parameters():
            p.grad = None
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        losses.append(loss.item())
    valid = evaluate(model, valid_columns)
    if valid > best - 0.01:
        for group in optimizer.param_groups:
            group["lr"] /= 4.0
    best = min(best, valid)
    print(f"epoch {epoch} train {np.mean(losses):.3f} valid {valid:.3f} lr {optimizer.param_groups[0]['lr']:.2f}")
