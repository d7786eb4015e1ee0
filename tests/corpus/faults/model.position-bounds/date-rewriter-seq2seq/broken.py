"""nn.Transformer that rewrites spelled-out dates ("on the 3rd of may ...") as digits."""

import argparse
import math
import random

import numpy as np
import torch
import torch.nn as nn

PAD, SOS, EOS = 0, 1, 2
CHARS = "abcdefghijklmnopqrstuvwxyz0123456789 -"
STOI = {c: i + 3 for i, c in enumerate(CHARS)}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
FILLERS = ["", "on ", "due ", "signed on ", "at the meeting of ", "as agreed with the landlord on "]
WEIGHTS = [40, 30, 20, 10, 3, 1]


def sample_pair(rng):
    day, month = rng.randint(1, 28), rng.randrange(12)
    text = f"{rng.choices(FILLERS, WEIGHTS)[0]}{day} {MONTHS[month]}"
    return text, f"{month + 1:02d}-{day:02d}"


def encode(text):
    return [SOS] + [STOI[c] for c in text] + [EOS]


def batches(pairs, size, rng):
    order = list(range(len(pairs)))
    rng.shuffle(order)
    for start in range(0, len(order) - size + 1, size):
        chosen = [pairs[i] for i in order[start : start + size]]
        sides = []
        for side in (0, 1):
            rows = [encode(pair[side]) for pair in chosen]
            width = max(map(len, rows))
            sides.append(torch.tensor([row + [PAD] * (width - len(row)) for row in rows]))
        yield sides


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout, max_len):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div)
        pe[0, :, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class DateRewriter(nn.Module):
    def __init__(self, vocab, d_model, max_len):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.embed = nn.Embedding(vocab, d_model, padding_idx=PAD)
        nn.init.normal_(self.embed.weight, std=d_model**-0.5)
        self.position = PositionalEncoding(d_model, 0.05, max_len)
        self.transformer = nn.Transformer(d_model, 4, 2, 2, 2 * d_model, dropout=0.05, batch_first=True)
        self.generator = nn.Linear(d_model, vocab)

    def forward(self, src, tgt):
        causal = nn.Transformer.generate_square_subsequent_mask(tgt.size(1), dtype=torch.bool)
        src_pad = src == PAD
        out = self.transformer(
            self.position(self.embed(src) * self.scale),
            self.position(self.embed(tgt) * self.scale),
            tgt_mask=causal,
            src_key_padding_mask=src_pad,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=src_pad,
        )
        return self.generator(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--d-model", type=int, default=48)
    parser.add_argument("--max-len", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)

    train_pairs = [sample_pair(rng) for _ in range(640)]
    model = DateRewriter(len(CHARS) + 3, args.d_model, args.max_len)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, betas=(0.9, 0.98), eps=1e-9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))

    model.train()
    step = 0
    for epoch in range(args.epochs):
        for src, tgt in batches(train_pairs, args.batch_size, rng):
            logits = model(src, tgt[:, :-1])
            loss = criterion(logits.reshape(-1, logits.size(-1)), tgt[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            step += 1
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} source length {src.size(1)} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
