"""Decoder-only model on a toy calendar language, batches by random offsets, dropout as regulariser."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
NOTES = ["work", "gym", "rest", "shop"]


def write_calendar(rng, entries):
    day, lines = 0, []
    for _ in range(entries):
        lines.append(f"{DAYS[day]}:{NOTES[rng.integers(len(NOTES))]};")
        day = (day + 1) % 7
    return "".join(lines)


class SelfAttention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        hidden_future = torch.ones(time, time, dtype=torch.bool).tril().logical_not()
        weights = self.drop(scores.masked_fill(hidden_future, float("-inf")).softmax(-1))
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, time, width))


class CharModel(nn.Module):
    def __init__(self, symbols, context, width=32, dropout=0.1):
        super().__init__()
        self.embed = nn.Embedding(symbols, width)
        self.position = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.attention = SelfAttention(width, 2, dropout)
        self.feed = nn.Sequential(nn.Linear(width, 3 * width), nn.ReLU(), nn.Linear(3 * width, width), nn.Dropout(dropout))
        self.out = nn.Linear(width, symbols)

    def forward(self, ids):
        h = self.drop(self.embed(ids) + self.position(torch.arange(ids.size(1))))
        h = h + self.attention(self.norm1(h))
        h = h + self.feed(self.norm2(h))
        return self.out(self.norm3(h))


def main():
    rng = np.random.default_rng(5)
    torch.manual_seed(5)
    text = write_calendar(rng, 1500)
    symbols = sorted(set(text))
    ids = torch.tensor([symbols.index(c) for c in text])
    cut = int(0.9 * len(ids))
    parts = {"train": ids[:cut], "valid": ids[cut:]}
    context, batch_size = 16, 24

    def batch(part):
        source = parts[part]
        offset = torch.randint(len(source) - context - 1, (batch_size,))
        rows = source[offset[:, None] + torch.arange(context + 1)]
        return rows[:, :-1], rows[:, 1:]

    model = CharModel(len(symbols), context)
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)

    def loss_on(part):
        x, y = batch(part)
        return F.cross_entropy(model(x).transpose(1, 2), y)

    @torch.no_grad()
    def estimate(rounds=4):
        model.eval()
        result = {part: float(np.mean([loss_on(part).item() for _ in range(rounds)])) for part in parts}
        model.train()
        return result

    for iteration in range(101):
        if iteration % 20 == 0:
            print(iteration, {k: round(v, 4) for k, v in estimate().items()})
        loss = loss_on("train")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


if __name__ == "__main__":
    main()
