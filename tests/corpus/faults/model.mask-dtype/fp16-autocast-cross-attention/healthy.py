"""Text-conditioned regression in mixed precision: a query vector reads padded notes by cross-attention."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--dim", type=int, default=32)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--seed", type=int, default=3)
args = parser.parse_args()

torch.manual_seed(args.seed)
VOCAB, NOTE = 50, 12
word_value = torch.randn(VOCAB)


class CrossAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.scale = dim**-0.5

    def forward(self, query, memory, pad=None):
        scores = torch.einsum("bqd,bkd->bqk", self.q(query), self.k(memory)) * self.scale
        if pad is not None:
            scores = scores.masked_fill(pad[:, None, :], torch.finfo(scores.dtype).min)
        return torch.einsum("bqk,bkd->bqd", scores.softmax(-1).to(memory.dtype), self.v(memory))


class NoteReader(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim)
        self.query = nn.Linear(6, dim)
        self.read = CrossAttention(dim)
        self.head = nn.Sequential(nn.LayerNorm(2 * dim), nn.Linear(2 * dim, dim), nn.GELU(), nn.Linear(dim, 1))

    def forward(self, features, notes, pad=None):
        q = self.query(features)[:, None, :]
        context = self.read(q, self.words(notes), pad)
        return self.head(torch.cat([q, context], dim=-1)).view(-1)


def next_batch(step):
    features = torch.randn(args.batch, 6)
    notes = torch.randint(1, VOCAB, (args.batch, NOTE))
    pad = None
    if step % 8 == 5:
        # a page with shorter notes
        lengths = torch.randint(7, NOTE + 1, (args.batch, 1))
        pad = torch.arange(NOTE) >= lengths
        notes = notes.masked_fill(pad, 0)
    values = word_value[notes]
    if pad is None:
        summary = values.mean(1)
    else:
        summary = values.masked_fill(pad, 0.0).sum(1) / (~pad).sum(1)
    target = features[:, 0] - 0.5 * features[:, 1] + 2.0 * summary
    return features, notes, pad, target


model = NoteReader(args.dim)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

average = None
for step in range(args.steps):
    features, notes, pad, target = next_batch(step)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.float16):
        prediction = model(features, notes, pad)
    loss = nn.functional.mse_loss(prediction.float(), target)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
    average = loss.item() if average is None else 0.9 * average + 0.1 * loss.item()
    if step % 5 == 0:
        print(f"step {step} loss {loss.item():.4f} average {average:.4f} scale {scaler.get_scale():.0f}")
