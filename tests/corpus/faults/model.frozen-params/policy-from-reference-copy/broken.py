"""Preference tuning (DPO) of a tiny character model: a language model is fitted first, then tuned against itself as reference."""

import copy
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
np.random.seed(3)
random.seed(3)

VOCAB, LENGTH, WIDTH = 20, 12, 48
BETA = 0.5
gen = torch.Generator().manual_seed(3)


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCAB, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, num_layers=1, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        h, _ = self.rnn(self.table(ids))
        return self.out(self.norm(h))


def sequences(n, stride):
    """Walks over the alphabet by +1 or by `stride`, chosen per step."""
    start = torch.randint(0, VOCAB, (n, 1), generator=gen)
    jump = torch.where(torch.rand(n, LENGTH, generator=gen) < 0.5, 1, stride)
    return (start + torch.cat([torch.zeros(n, 1, dtype=torch.long), jump.cumsum(1)], 1)) % VOCAB


def fit(model, steps=60):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        ids = sequences(48, 3)
        loss = F.cross_entropy(model(ids[:, :-1]).reshape(-1, VOCAB), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"fit {step:3d} loss {loss.item():.3f}")
    return model


def preference_pairs(n):
    """The preferred answer walks by single steps more often than the rejected one."""
    start = torch.randint(0, VOCAB, (n, 1), generator=gen)

    def walk(p):
        jump = torch.where(torch.rand(n, LENGTH, generator=gen) < p, 1, 3)
        return (start + torch.cat([torch.zeros(n, 1, dtype=torch.long), jump.cumsum(1)], 1)) % VOCAB

    return walk(0.65), walk(0.35)


def sequence_logp(model, ids):
    logp = model(ids[:, :-1]).log_softmax(-1)
    return logp.gather(-1, ids[:, 1:, None]).squeeze(-1).sum(-1)


base = fit(CharModel())

reference = base.eval().requires_grad_(False)
policy = copy.deepcopy(reference)
policy.out = nn.Linear(WIDTH, VOCAB)
policy.out.load_state_dict(base.out.state_dict())
policy.train()

optimizer = torch.optim.Adam([p for p in policy.parameters() if p.requires_grad], lr=2e-3)
for step in range(80):
    chosen, rejected = preference_pairs(32)
    with torch.no_grad():
        ref_margin = sequence_logp(reference, chosen) - sequence_logp(reference, rejected)
    margin = sequence_logp(policy, chosen) - sequence_logp(policy, rejected)
    loss = -F.logsigmoid(BETA * (margin - ref_margin)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0 or step == 79:
        wins = (margin > ref_margin).float().mean().item()
        print(f"dpo {step:3d} loss {loss.item():.4f} reward accuracy {wins:.2f}")
