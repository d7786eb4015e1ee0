"""Number words to digits ("three hundred four" -> "3 0 4") with nn.Transformer."""

import math
import random

import torch
import torch.nn as nn

random.seed(5)
torch.manual_seed(5)

UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SRC_WORDS = ["<pad>", *UNITS, "thousand", "hundred", "ty", "minus"]
SRC = {w: i for i, w in enumerate(SRC_WORDS)}
PAD, BOS, EOS = 0, 1, 2
TGT = {str(d): d + 3 for d in range(10)}
TGT["-"] = 13
TGT_SIZE = 14


def spell():
    digits = random.choice([2, 3, 3, 4, 5, 6])
    number = "".join([str(random.randint(1, 9))] + [str(random.randint(0, 9)) for _ in range(digits - 1)])
    sign = random.random() < 0.3
    words = ["minus"] if sign else []
    for place, d in zip(range(digits - 1, -1, -1), number, strict=True):
        words.append(UNITS[int(d)])
        if place == 3:
            words.append("thousand")
        elif place % 3 == 2:
            words.append("hundred")
        elif place % 3 == 1:
            words.append("ty")
    target = ["-"] * sign + list(number)
    return [SRC[w] for w in words], [BOS] + [TGT[c] for c in target] + [EOS]


def pad(rows):
    width = max(map(len, rows))
    return torch.tensor([r + [PAD] * (width - len(r)) for r in rows])


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div)
        pe[:, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class Speller(nn.Module):
    def __init__(self, d_model=48):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.src_emb = nn.Embedding(len(SRC), d_model, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(TGT_SIZE, d_model, padding_idx=PAD)
        for emb in (self.src_emb, self.tgt_emb):
            nn.init.normal_(emb.weight, std=d_model**-0.5)
        self.pos = PositionalEncoding(d_model)
        self.transformer = nn.Transformer(
            d_model,
            nhead=4,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dim_feedforward=96,
            dropout=0.0,
            batch_first=True,
            norm_first=True,
        )
        self.generator = nn.Linear(d_model, TGT_SIZE)

    def forward(self, src, tgt):
        causal = torch.triu(torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool), diagonal=1)
        hidden = self.transformer(
            self.pos(self.src_emb(src) * self.scale),
            self.pos(self.tgt_emb(tgt) * self.scale),
            tgt_mask=causal,
            src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=src == PAD,
        )
        return self.generator(hidden)


pairs = [spell() for _ in range(2400)]
train_pairs, valid_pairs = pairs[:2200], pairs[2200:]
model = Speller()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 15, 1.0))


def batches(rows, size):
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        yield pad([s for s, _ in part]), pad([t for _, t in part])


for epoch in range(3):
    random.shuffle(train_pairs)
    model.train()
    total, count = 0.0, 0
    for src, tgt in batches(train_pairs, 40):
        logits = model(src, tgt[:, :-1])
        loss = criterion(logits.reshape(-1, TGT_SIZE), tgt[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
        count += 1
    model.eval()
    right = tokens = 0
    with torch.no_grad():
        for src, tgt in batches(valid_pairs, 100):
            pred = model(src, tgt[:, :-1]).argmax(-1)
            gold = tgt[:, 1:]
            real = gold != PAD
            right += ((pred == gold) & real).sum().item()
            tokens += real.sum().item()
    print(f"epoch {epoch + 1}: loss {total / count:.4f}, token accuracy {right / tokens:.3f}")
