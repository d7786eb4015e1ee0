"""A small language model on padded sentences. The argument names what is wrong with it."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

fault = sys.argv[1] if len(sys.argv) > 1 else "none"
torch.manual_seed(0)
VOCABULARY, LENGTH, WIDTH = 20, 12, 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        x = self.tokens(ids)
        if fault != "no_positions":
            x = x + self.places(torch.arange(ids.shape[1]))
        if fault == "mixed":
            x = x + x.mean(0, keepdim=True)
        allowed = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool)
        if fault not in ("leak", "pad", "no_positions"):
            allowed = allowed.tril()
        allowed = allowed[None].expand(len(ids), -1, -1)
        if fault != "pad":
            allowed = allowed & ((ids != 0)[:, None, :] | torch.eye(ids.shape[1], dtype=torch.bool))
        scores = self.query(x) @ self.key(x).transpose(1, 2) / WIDTH**0.5
        x = x + scores.masked_fill(~allowed, float("-inf")).softmax(-1) @ self.value(x)
        return self.head(x) * (60 if fault == "loud" else 1)


def batch():
    start = torch.randint(1, VOCABULARY, (6, 1))
    ids = (start + 3 * torch.arange(LENGTH + 1)) % (VOCABULARY - 1) + 1
    lengths = torch.tensor([12, 9, 7, 12, 5, 10])[:, None]
    return torch.where(torch.arange(LENGTH + 1) < lengths, ids, 0)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    ids = batch()
    inputs, targets = (
        (ids[:, :-1], ids[:, :-1]) if fault == "unshifted" else (ids[:, :-1], ids[:, 1:])
    )
    logits = model(inputs)
    loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), targets.reshape(-1), ignore_index=0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
