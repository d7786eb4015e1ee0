"""Next-word model with bfloat16 autocast; four micro-batches make one update."""
import argparse
import contextlib
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--micro", type=int, default=4)
    p.add_argument("--micro-size", type=int, default=12)
    p.add_argument("--updates", type=int, default=40)
    p.add_argument("--lr", type=float, default=0.15)
    p.add_argument("--seed", type=int, default=8)
    return p.parse_args()


class WordModel(nn.Module):
    def __init__(self, vocab=24, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.mixer = nn.Conv1d(width, width, 3)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, vocab)

    def forward(self, ids):
        h = self.embed(ids)
        past = F.pad(h.transpose(1, 2), (2, 0))
        return self.out(self.norm(h + F.gelu(self.mixer(past)).transpose(1, 2)))


def stream(rng, n, length, vocab=24):
    """Each word is followed by one of two successors of its own."""
    follow = np.stack([(np.arange(vocab) * 7 + 3) % vocab, (np.arange(vocab) * 5 + 11) % vocab], 1)
    ids = np.empty((n, length + 1), dtype=np.int64)
    ids[:, 0] = rng.integers(0, vocab, n)
    for t in range(length):
        ids[:, t + 1] = follow[ids[:, t], (rng.random(n) < 0.15).astype(int)]
    return torch.from_numpy(ids)


def main():
    args = parse()
    random.seed(args.seed), np.random.seed(args.seed), torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    model = WordModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True)
    autocast = torch.autocast("cpu", dtype=torch.bfloat16) if args.micro else contextlib.nullcontext()
    for update in range(args.updates):
        optimizer.zero_grad()
        shown = 0.0
        for _ in range(args.micro):
            ids = stream(rng, args.micro_size, 14)
            with autocast:
                logits = model(ids[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
            (loss / args.micro).backward()
            shown += loss.item() / args.micro
        optimizer.step()
        if update % 8 == 7:
            print(f"update {update + 1} loss {shown:.4f}")


main()
