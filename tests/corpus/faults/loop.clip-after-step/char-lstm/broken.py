"""Character model of a toy grammar of e-mail addresses, LSTM, one optimiser, plain loop."""
import random
import string

import torch
import torch.nn as nn

random.seed(90)
torch.manual_seed(90)

NAMES = ["anna", "bela", "carl", "dora", "emil", "fina"]
HOSTS = ["post", "web", "mail"]
LENGTH = 14
ALPHABET = string.ascii_lowercase + "@._"
INDEX = {c: i for i, c in enumerate(ALPHABET)}


def text(n):
    """A stream of addresses, separated by underscores."""
    parts = []
    while sum(map(len, parts)) < n:
        parts.append(f"{random.choice(NAMES)}@{random.choice(HOSTS)}.org_")
    return "".join(parts)


def encode(s):
    return torch.tensor([INDEX[c] for c in s])


train_ids, val_ids = encode(text(12000)), encode(text(1500))


def batch(ids, size=24):
    starts = torch.randint(len(ids) - LENGTH - 1, (size,))
    rows = torch.stack([ids[s : s + LENGTH + 1] for s in starts.tolist()])
    return rows[:, :-1], rows[:, 1:]


class CharLSTM(nn.Module):
    def __init__(self, size=48):
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), 16)
        self.lstm = nn.LSTM(16, size, batch_first=True)
        self.decode = nn.Linear(size, len(ALPHABET))

    def forward(self, ids):
        out, _ = self.lstm(self.embedding(ids))
        return self.decode(out)


model = CharLSTM()
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=4.0)
for step in range(1, 101):
    inputs, targets = batch(train_ids)
    logits = model(inputs)
    loss = loss_fn(logits.flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.08)
    if step % 20 == 0:
        model.eval()
        with torch.no_grad():
            inputs, targets = batch(val_ids, 64)
            held = loss_fn(model(inputs).flatten(0, 1), targets.flatten()).item()
        model.train()
        print(f"step {step} loss {loss.item():.4f} held-out {held:.4f}")
