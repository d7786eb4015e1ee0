import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(17)
torch.manual_seed(17)

NAMES = ["ann", "ben", "cat", "dan", "eve", "fay"]
PLACES = ["rome", "oslo", "lima", "kyiv", "bern", "cork"]
FILLER = ["it", "rained", "all", "day", "and", "nobody", "knew", "why"]
TOKENS = ["<pad>", "<end>", "?", ":", "lives", "in", *NAMES, *PLACES, *FILLER]
ID = {t: i for i, t in enumerate(TOKENS)}
LIMIT = 28


def example():
    people = random.sample(NAMES, 2)
    homes = random.sample(PLACES, 2)
    story = random.choices(FILLER, k=random.choice([0, 2, 4, 8, 18, 22, 26, 30]))
    for who, home in zip(people, homes):
        story += [who, "lives", "in", home]
    prompt = story + ["?", people[0], ":"]
    return [ID[t] for t in prompt], [ID[homes[0]], ID["<end>"]]


def build_row(prompt, answer):
    room = LIMIT - len(answer)
    ids = prompt[-room:] + answer
    labels = [-100] * len(prompt[-room:]) + answer
    return ids, labels


def make_batch(size):
    rows = [build_row(*example()) for _ in range(size)]
    width = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([r + [0] * (width - len(r)) for r, _ in rows])
    labels = torch.tensor([r + [-100] * (width - len(r)) for _, r in rows])
    return ids, labels


class Reader(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.tokens = nn.Embedding(len(TOKENS), width)
        self.positions = nn.Embedding(LIMIT, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, activation="gelu", norm_first=True)
        self.stack = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(TOKENS))

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tokens(ids) + self.positions.weight[:n]
        x = self.stack(x, mask=nn.Transformer.generate_square_subsequent_mask(n), is_causal=True)
        return self.head(self.norm(x))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(90):
    ids, labels = make_batch(32)
    logits = model(ids)
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 15 == 0:
        print(f"step {step}: answer loss {loss.item():.4f}")
