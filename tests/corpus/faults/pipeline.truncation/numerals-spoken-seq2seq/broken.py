"""Spell numbers out: digits in, words out, with nn.Transformer in its time-first layout."""
import math
import random

import numpy as np
import torch
from torch import nn

PAD, BOS, EOS = 0, 1, 2
ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
ONES += [f"{w}teen" for w in ("thir", "four", "fif", "six", "seven", "eigh", "nine")]
TENS = [f"{w}ty" for w in ("twen", "thir", "for", "fif", "six", "seven", "eigh", "nine")]
WORDS = {w: i + 3 for i, w in enumerate(ONES + TENS + ["hundred", "thousand", "and"])}
DIGITS = {d: i + 3 for i, d in enumerate("0123456789")}
MAX_TARGET_LEN = 8


def spell(n):
    if n < 20:
        return [ONES[n]]
    if n < 100:
        return [TENS[n // 10 - 2]] + ([ONES[n % 10]] if n % 10 else [])
    if n < 1000:
        rest = ["and", *spell(n % 100)] if n % 100 else []
        return [ONES[n // 100], "hundred", *rest]
    rest = spell(n % 1000) if n % 1000 else []
    return [*spell(n // 1000), "thousand", *rest]


def encode_source(n):
    return [DIGITS[d] for d in str(n)]


def encode_target(n):
    ids = [BOS] + [WORDS[w] for w in spell(n)] + [EOS]
    return ids[:MAX_TARGET_LEN]


def stack(rows):
    """Time first: (T, B)."""
    out = torch.full((max(map(len, rows)), len(rows)), PAD)
    for b, row in enumerate(rows):
        out[: len(row), b] = torch.tensor(row)
    return out


class Speller(nn.Module):
    def __init__(self, dim=48, heads=4):
        super().__init__()
        self.dim = dim
        self.digits = nn.Embedding(3 + len(DIGITS), dim, padding_idx=PAD)
        self.words = nn.Embedding(3 + len(WORDS), dim, padding_idx=PAD)
        t = torch.arange(32).unsqueeze(1)
        freq = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(32, 1, dim)
        table[:, 0, 0::2] = torch.sin(t * freq)
        table[:, 0, 1::2] = torch.cos(t * freq)
        self.register_buffer("table", table)
        self.core = nn.Transformer(dim, heads, 1, 1, 96, dropout=0.0, norm_first=True)
        self.project = nn.Linear(dim, 3 + len(WORDS))

    def forward(self, source, target):
        causal = torch.triu(torch.ones(len(target), len(target), dtype=torch.bool), diagonal=1)
        h = self.core(
            self.digits(source) + self.table[: len(source)],
            self.words(target) + self.table[: len(target)],
            tgt_mask=causal,
            src_key_padding_mask=(source == PAD).T,
            tgt_key_padding_mask=(target == PAD).T,
            memory_key_padding_mask=(source == PAD).T,
        )
        return self.project(h)


def main():
    random.seed(91)
    np.random.seed(91)
    torch.manual_seed(91)
    numbers = np.unique(np.concatenate([np.random.randint(0, 1000, 500), np.random.randint(1000, 100000, 1500)]))
    numbers = np.random.permutation(numbers).tolist()
    train, held_out = numbers[:-200], numbers[-200:]
    model = Speller()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)

    def loss_of(part):
        target = stack([encode_target(n) for n in part])
        logits = model(stack([encode_source(n) for n in part]), target[:-1])
        return criterion(logits.flatten(0, 1), target[1:].flatten())

    for epoch in range(3):
        model.train()
        random.shuffle(train)
        total, batches = 0.0, 0
        for i in range(0, len(train), 40):
            optimizer.zero_grad()
            loss = loss_of(train[i : i + 40])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
            batches += 1
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch}: train {total / batches:.4f} held out {loss_of(held_out).item():.4f}")

    spoken = torch.tensor([[BOS]])
    names = {i: w for w, i in WORDS.items()}
    with torch.no_grad():
        for _ in range(14):
            step = model(stack([encode_source(48213)]), spoken)[-1].argmax(-1)
            spoken = torch.cat([spoken, step.unsqueeze(0)])
            if step.item() == EOS:
                break
    print("48213 ->", " ".join(names.get(i, "<>") for i in spoken.flatten().tolist()))


if __name__ == "__main__":
    main()
