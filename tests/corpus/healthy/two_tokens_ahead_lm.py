"""Note sequences: a causal trunk with two heads, one for the next note and one for the note after it (an auxiliary aim)."""
import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Settings:
    notes: int = 18
    context: int = 24
    width: int = 48
    heads: int = 3
    depth: int = 2
    batch: int = 32
    steps: int = 140
    lr: float = 2e-3
    ahead_share: float = 0.3


def compose(settings, length, seed):
    """Runs up or down by one of three intervals, now and then a leap."""
    rng = random.Random(seed)
    note, interval, tune = 0, 1, []
    for _ in range(length):
        if rng.random() < 0.15:
            interval = rng.choice([1, 3, settings.notes - 2])
        note = (note + interval) % settings.notes
        tune.append(note)
    return torch.tensor(tune)


class CausalBlock(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))
        self.register_buffer("later", torch.triu(torch.ones(context, context, dtype=torch.bool), 1))

    def forward(self, x):
        h = self.norm1(x)
        hidden = self.later[: x.size(1), : x.size(1)]
        x = x + self.attention(h, h, h, attn_mask=hidden, need_weights=False)[0]
        return x + self.feed(self.norm2(x))


class TuneModel(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.note = nn.Embedding(s.notes, s.width)
        self.place = nn.Embedding(s.context, s.width)
        self.blocks = nn.Sequential(*(CausalBlock(s.width, s.heads, s.context) for _ in range(s.depth)))
        self.norm = nn.LayerNorm(s.width)
        self.next_note = nn.Linear(s.width, s.notes)
        self.note_after = nn.Linear(s.width, s.notes)
        nn.init.normal_(self.note.weight, std=0.1)
        nn.init.normal_(self.place.weight, std=0.1)

    def forward(self, tune):
        h = self.norm(self.blocks(self.note(tune) + self.place(torch.arange(tune.size(1)))))
        return self.next_note(h), self.note_after(h)


def windows(tune, s, generator):
    starts = torch.randint(0, len(tune) - s.context - 2, (s.batch,), generator=generator)
    chunk = torch.stack([tune[i : i + s.context + 2] for i in starts.tolist()])
    return chunk[:, :-2], chunk[:, 1:-1], chunk[:, 2:]


def train():
    s = Settings()
    torch.manual_seed(12)
    random.seed(12)
    draws = torch.Generator().manual_seed(13)
    tune, unheard = compose(s, 9000, 1), compose(s, 1500, 2)
    model = TuneModel(s)
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.lr, weight_decay=0.0)
    for step in range(1, s.steps + 1):
        model.train()
        now, following, after = windows(tune, s, draws)
        one, two = model(now)
        loss_one = F.cross_entropy(one.flatten(0, 1), following.flatten())
        loss_two = F.cross_entropy(two.flatten(0, 1), after.flatten())
        loss = loss_one + s.ahead_share * loss_two
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 35 == 0:
            model.eval()
            with torch.no_grad():
                now, following, _ = windows(unheard, s, draws)
                right = (model(now)[0].argmax(-1) == following).float().mean()
            print(f"{step}: next {loss_one.item():.3f}, after {loss_two.item():.3f}, unheard {right.item():.3f}")


if __name__ == "__main__":
    train()
