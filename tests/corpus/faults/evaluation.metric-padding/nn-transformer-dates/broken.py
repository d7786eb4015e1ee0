"""Rewrite spoken dates in compact form with nn.Transformer; report token accuracy on held-out pairs."""

import math
import random

import numpy as np
import torch
from torch import nn

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)

PAD, BOS, EOS = 0, 1, 2
SRC_VOCAB, TGT_VOCAB = 24, 24
MAX_LEN = 14


def sample_pair():
    length = random.randint(3, 10)
    src = [random.randint(3, SRC_VOCAB - 1) for _ in range(length)]
    tgt = [tok if tok % 2 else 3 + (tok + 1) % (TGT_VOCAB - 3) for tok in src]
    return src, [BOS] + tgt + [EOS]


def collate(pairs):
    s_len = max(len(s) for s, _ in pairs)
    t_len = max(len(t) for _, t in pairs)
    src = torch.full((len(pairs), s_len), PAD)
    tgt = torch.full((len(pairs), t_len), PAD)
    for i, (s, t) in enumerate(pairs):
        src[i, : len(s)] = torch.tensor(s)
        tgt[i, : len(t)] = torch.tensor(t)
    return src, tgt


def sinusoids(length, dim):
    position = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    table = torch.zeros(length, dim)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


class DateRewriter(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.dim = dim
        self.src_embed = nn.Embedding(SRC_VOCAB, dim, padding_idx=PAD)
        self.tgt_embed = nn.Embedding(TGT_VOCAB, dim, padding_idx=PAD)
        self.register_buffer("positions", sinusoids(MAX_LEN, dim))
        self.core = nn.Transformer(dim, 4, 1, 1, dim_feedforward=96, dropout=0.05, batch_first=True)
        self.head = nn.Linear(dim, TGT_VOCAB)

    def forward(self, src, tgt):
        src_pad, tgt_pad = src == PAD, tgt == PAD
        causal = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1)
        s = self.src_embed(src) + self.positions[: src.size(1)]
        t = self.tgt_embed(tgt) + self.positions[: tgt.size(1)]
        out = self.core(
            s,
            t,
            tgt_mask=causal,
            src_key_padding_mask=src_pad,
            tgt_key_padding_mask=tgt_pad,
            memory_key_padding_mask=src_pad,
        )
        return self.head(out)


train_pairs = [sample_pair() for _ in range(2400)]
held_out = [sample_pair() for _ in range(240)]
net = DateRewriter()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)


def token_accuracy():
    net.eval()
    right = total = 0
    with torch.no_grad():
        for i in range(0, len(held_out), 60):
            src, tgt = collate(held_out[i : i + 60])
            guess = net(src, tgt[:, :-1]).argmax(-1)
            gold = tgt[:, 1:]
            right += (guess == gold).sum().item()
            total += gold.numel()
    net.train()
    return right / total


step = 0
for epoch in range(3):
    random.shuffle(train_pairs)
    for i in range(0, len(train_pairs), 48):
        src, tgt = collate(train_pairs[i : i + 48])
        logits = net(src, tgt[:, :-1])
        loss = criterion(logits.reshape(-1, TGT_VOCAB), tgt[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        step += 1
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f} held-out token accuracy {token_accuracy():.4f}")
