# %% [markdown]
# # Which slot fills the request?
# Commands are padded token sequences; the target is a weekday mentioned right after a keyword.

# %%
import math
import random

import numpy as np
import torch
import torch.nn as nn

SEED = 21
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

# %%
PAD, CLS, KEYWORD = 0, 1, 2
NUM_DAYS = 7
DAY0, FILLER0, VOCAB = 3, 10, 70


def make_command():
    length = random.randint(6, 22)
    tokens = [random.randint(FILLER0, VOCAB - 1) for _ in range(length)]
    day = random.randrange(NUM_DAYS)
    spot = random.randrange(length - 1)
    tokens[spot], tokens[spot + 1] = KEYWORD, DAY0 + day
    return [CLS, *tokens], day


def pad_batch(examples):
    longest = max(len(t) for t, _ in examples)
    ids = torch.full((len(examples), longest), PAD)
    for row, (tokens, _) in enumerate(examples):
        ids[row, : len(tokens)] = torch.tensor(tokens)
    attention_mask = (ids != PAD).long()
    return ids, attention_mask, torch.tensor([d for _, d in examples])


train_set = [make_command() for _ in range(1280)]
test_set = [make_command() for _ in range(256)]


# %%
class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.dense = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(0.1)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x, bias):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        scores = scores + bias
        probs = self.dropout(torch.softmax(scores, dim=-1))
        context = torch.matmul(probs, v).permute(0, 2, 1, 3).contiguous()
        return self.dense(context.view(x.shape))


class Layer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.attention = Attention(hidden, heads)
        self.norm_a = nn.LayerNorm(hidden)
        self.ffn = nn.Sequential(nn.Linear(hidden, hidden * 2), nn.GELU(), nn.Linear(hidden * 2, hidden))
        self.norm_b = nn.LayerNorm(hidden)

    def forward(self, x, bias):
        x = self.norm_a(x + self.attention(x, bias))
        return self.norm_b(x + self.ffn(x))


class MiniBert(nn.Module):
    def __init__(self, hidden=48, heads=4, depth=2, max_positions=32):
        super().__init__()
        self.words = nn.Embedding(VOCAB, hidden, padding_idx=PAD)
        self.places = nn.Embedding(max_positions, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.layers = nn.ModuleList([Layer(hidden, heads) for _ in range(depth)])
        self.head = nn.Linear(hidden, NUM_DAYS)

    def forward(self, ids, attention_mask):
        places = torch.arange(ids.size(1), device=ids.device)
        x = self.norm(self.words(ids) + self.places(places))
        bias = attention_mask[:, None, None, :].to(x.dtype)
        bias = (1.0 - bias) * torch.finfo(bias.dtype).min
        for layer in self.layers:
            x = layer(x, bias)
        return self.head(x[:, 0])


# %%
model = MiniBert()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    model.train()
    random.shuffle(train_set)
    losses = []
    for start in range(0, len(train_set), 32):
        ids, mask, days = pad_batch(train_set[start : start + 32])
        loss = criterion(model(ids, mask), days)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        ids, mask, days = pad_batch(test_set)
        acc = (model(ids, mask).argmax(1) == days).float().mean().item()
    print(f"epoch {epoch}: loss {np.mean(losses):.3f}, test accuracy {acc:.3f}")
