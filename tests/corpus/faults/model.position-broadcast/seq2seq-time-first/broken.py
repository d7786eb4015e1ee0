# Reverse a sequence of symbols with an encoder-decoder; tensors are (time, batch).
import math
import random

import torch
import torch.nn as nn

torch.manual_seed(19)
random.seed(19)

N_SYMBOLS = 14
PAD, GO, END = 0, 1, 2
VOCAB = N_SYMBOLS + 3
DIM, BATCH, ITERATIONS = 48, 16, 110


def make_batch(rng):
    src, tgt = [], []
    for _ in range(BATCH):
        word = [rng.randrange(3, VOCAB) for _ in range(rng.randint(5, 8))]
        src.append(torch.tensor(word + [END]))
        tgt.append(torch.tensor([GO] + word[::-1] + [END]))
    pad = nn.utils.rnn.pad_sequence
    return pad(src, padding_value=PAD), pad(tgt, padding_value=PAD)


def sinusoids(length, dim):
    place = torch.arange(length, dtype=torch.float32)[:, None]
    rate = torch.exp(-math.log(1000.0) * torch.arange(0, dim, 2) / dim)
    table = torch.empty(1, length, dim)
    table[0, :, 0::2] = torch.sin(place * rate)
    table[0, :, 1::2] = torch.cos(place * rate)
    return table


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbols = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
        self.register_buffer("table", sinusoids(32, DIM), persistent=False)

    def forward(self, ids):
        x = self.symbols(ids)
        return x + self.table[:, : x.size(1)]


class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = Embedder()
        self.core = nn.Transformer(
            d_model=DIM, nhead=4, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=96, dropout=0.0
        )
        self.unembed = nn.Linear(DIM, VOCAB)

    def forward(self, src, tgt):
        future = nn.Transformer.generate_square_subsequent_mask(tgt.size(0), device=tgt.device) < 0
        src_pad = src.eq(PAD).t()
        out = self.core(
            self.embed(src),
            self.embed(tgt),
            tgt_mask=future,
            src_key_padding_mask=src_pad,
            memory_key_padding_mask=src_pad,
        )
        return self.unembed(out)


def loss_on(model, src, tgt):
    logits = model(src, tgt[:-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), tgt[1:].flatten(), ignore_index=PAD)


model = Reverser()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
train_rng, dev_rng = random.Random(1), random.Random(2)
dev_src, dev_tgt = make_batch(dev_rng)

for it in range(1, ITERATIONS + 1):
    src, tgt = make_batch(train_rng)
    optimizer.zero_grad()
    loss = loss_on(model, src, tgt)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if it % 22 == 0:
        model.eval()
        with torch.no_grad():
            dev = loss_on(model, dev_src, dev_tgt).item()
        model.train()
        print(f"{it:4d}  train {loss.item():.3f}  dev {dev:.3f}")
