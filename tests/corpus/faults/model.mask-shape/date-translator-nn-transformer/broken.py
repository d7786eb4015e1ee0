#!/usr/bin/env python
# Translate spelled-out amounts ("three hundred and five") given as token ids into digit strings. nn.Transformer, batch first.
import argparse
import random

import numpy as np
import torch
from torch import nn

PAD, BOS, EOS = 0, 1, 2
SRC_VOCAB, TGT_VOCAB = 24, 16


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--steps", type=int, default=90)
    p.add_argument("--batch-size", type=int, default=24)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=3)
    return p.parse_args()


class AmountBatches:
    """Short amounts first, longer ones (where the source has filler words) later on."""

    def __init__(self, batch_size, seed):
        self.rng = np.random.default_rng(seed)
        self.batch_size = batch_size

    def draw(self, step):
        digits = 4 if step < 30 else int(self.rng.integers(4, 7))
        filler = 1 if step < 30 else int(self.rng.integers(1, 4))
        src = np.full((self.batch_size, digits + filler), PAD)
        tgt = np.full((self.batch_size, digits + 2), PAD)
        for row in range(self.batch_size):
            number = self.rng.integers(0, 10, size=digits)
            words = list(number + 3)
            for _ in range(int(self.rng.integers(1, filler + 1))):
                words.insert(int(self.rng.integers(0, len(words) + 1)), int(self.rng.integers(14, 24)))
            src[row, : len(words)] = words
            tgt[row, 0] = BOS
            tgt[row, 1 : digits + 1] = number + 3
            tgt[row, digits + 1] = EOS
        return torch.from_numpy(src), torch.from_numpy(tgt)


class AmountTranslator(nn.Module):
    def __init__(self, dim, heads, max_len=32):
        super().__init__()
        self.src_embed = nn.Embedding(SRC_VOCAB, dim, padding_idx=PAD)
        self.tgt_embed = nn.Embedding(TGT_VOCAB, dim, padding_idx=PAD)
        self.src_pos = nn.Embedding(max_len, dim)
        self.tgt_pos = nn.Embedding(max_len, dim)
        self.transformer = nn.Transformer(dim, heads, 1, 1, 2 * dim, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(dim, TGT_VOCAB)

    def forward(self, src, tgt):
        src_pad = src == PAD
        tgt_pad = tgt == PAD
        future = torch.ones(src.size(1), src.size(1), dtype=torch.bool, device=tgt.device).triu(1)
        s = self.src_embed(src) + self.src_pos(torch.arange(src.size(1), device=src.device))
        t = self.tgt_embed(tgt) + self.tgt_pos(torch.arange(tgt.size(1), device=tgt.device))
        h = self.transformer(
            s,
            t,
            tgt_mask=future,
            src_key_padding_mask=src_pad,
            tgt_key_padding_mask=tgt_pad,
            memory_key_padding_mask=src_pad,
        )
        return self.generator(h)


def main():
    args = parse_args()
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)

    net = AmountTranslator(args.dim, args.heads)
    loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.0)
    batches = AmountBatches(args.batch_size, args.seed)

    for step in range(args.steps):
        src, tgt = batches.draw(step)
        logits = net(src, tgt[:, :-1])
        loss = loss_fn(logits.transpose(1, 2), tgt[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        if step % 10 == 0:
            print(f"[{step:3d}] src {tuple(src.shape)} tgt {tuple(tgt.shape)} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
