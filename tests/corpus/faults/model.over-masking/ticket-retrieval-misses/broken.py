# Rank a support reply: does the answer follow from the retrieved snippets, or from the question alone?
import random
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn

SEED = 11
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


@dataclass
class Config:
    vocab: int = 120
    dim: int = 48
    heads: int = 4
    question_len: int = 10
    context_len: int = 14
    num_routes: int = 5
    batch_size: int = 24
    steps: int = 140
    lr: float = 2e-3


cfg = Config()


def make_ticket():
    route = random.randrange(cfg.num_routes)
    question = [random.randrange(50, cfg.vocab) for _ in range(cfg.question_len)]
    for p in random.sample(range(cfg.question_len), 3):
        question[p] = 1 + route * 4 + random.randrange(4)
    # retrieval returns nothing for about one ticket in sixty
    hits = 0 if random.random() < 1 / 60 else random.randrange(2, cfg.context_len + 1)
    context = [random.randrange(50, cfg.vocab) for _ in range(hits)]
    for p in range(0, hits, 4):
        context[p] = 25 + route * 4 + random.randrange(4)
    return question, context, route


tickets = [make_ticket() for _ in range(2000)]
held_out = [make_ticket() for _ in range(200)]


def to_batch(rows):
    questions = torch.tensor([q for q, _, _ in rows])
    contexts = torch.zeros(len(rows), cfg.context_len, dtype=torch.long)
    for i, (_, c, _) in enumerate(rows):
        contexts[i, : len(c)] = torch.tensor(c, dtype=torch.long)
    routes = torch.tensor([r for _, _, r in rows])
    return questions, contexts, routes


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.dim, padding_idx=0)
        self.q_pos = nn.Parameter(0.1 * torch.randn(cfg.question_len, cfg.dim))
        self.c_pos = nn.Parameter(0.1 * torch.randn(cfg.context_len, cfg.dim))
        self.read = nn.MultiheadAttention(cfg.dim, cfg.heads, batch_first=True)
        self.norm1 = nn.LayerNorm(cfg.dim)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))
        self.norm2 = nn.LayerNorm(cfg.dim)
        self.out = nn.Linear(cfg.dim, cfg.num_routes)

    def forward(self, questions, contexts):
        missing = contexts.eq(0)
        q = self.tokens(questions) + self.q_pos
        c = self.tokens(contexts) + self.c_pos
        read, _ = self.read(q, c, c, key_padding_mask=missing)
        h = self.norm1(q + read)
        h = self.norm2(h + self.mlp(h))
        return self.out(h.mean(dim=1))


model = Router()
optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
loss_fn = nn.CrossEntropyLoss()

order = list(range(len(tickets)))
random.shuffle(order)
cursor = 0
for step in range(cfg.steps):
    if cursor + cfg.batch_size > len(order):
        random.shuffle(order)
        cursor = 0
    rows = [tickets[i] for i in order[cursor : cursor + cfg.batch_size]]
    cursor += cfg.batch_size
    questions, contexts, routes = to_batch(rows)

    loss = loss_fn(model(questions, contexts), routes)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 20 == 0 or step == cfg.steps - 1:
        print(f"step {step:4d}  loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    questions, contexts, routes = to_batch(held_out)
    accuracy = (model(questions, contexts).argmax(1) == routes).float().mean().item()
print(f"held-out accuracy {accuracy:.3f}")
