#!/usr/bin/env python
# coding: utf-8

# # Peptide localisation with a Transformer encoder

# In[1]:

import math
import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)

AMINO = "ACDEFGHIKLMNPQRSTVWY"
stoi = {a: i + 1 for i, a in enumerate(AMINO)}
MOTIFS = ["KDEL", "SKLR", "PKKR"]


# In[2]:

def make_peptide(rng):
    length = min(int(rng.lognormvariate(3.4, 0.33)), 120)
    length = max(length, 10)
    label = rng.randrange(len(MOTIFS))
    seq = [rng.choice(AMINO) for _ in range(length)]
    for _ in range(2):
        at = rng.randrange(length - 4)
        seq[at : at + 4] = MOTIFS[label]
    return "".join(seq), label


rng = random.Random(7)
train_set = [make_peptide(rng) for _ in range(1600)]
valid_set = [make_peptide(rng) for _ in range(160)]
print("mean length", sum(len(s) for s, _ in train_set) / len(train_set))


def collate(batch):
    seqs = [torch.tensor([stoi[a] for a in s]) for s, _ in batch]
    x = pad_sequence(seqs, batch_first=True, padding_value=0)
    return x, x.eq(0), torch.tensor([y for _, y in batch])


train_dl = DataLoader(train_set, batch_size=16, shuffle=True, collate_fn=collate)
valid_dl = DataLoader(valid_set, batch_size=32, collate_fn=collate)


# In[3]:

class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=512):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


class Localiser(nn.Module):
    def __init__(self, d_model=40, nhead=4, num_layers=2):
        super().__init__()
        self.d_model = d_model
        self.embedding = nn.Embedding(len(AMINO) + 1, d_model, padding_idx=0)
        self.motif = nn.Conv1d(d_model, d_model, kernel_size=5, padding=2)
        self.pos_encoder = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, 96, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d_model)
        self.decoder = nn.Linear(d_model, len(MOTIFS))

    def forward(self, src, pad):
        x = self.embedding(src)
        x = x + self.motif(x.transpose(1, 2)).transpose(1, 2)
        x = self.pos_encoder(x)
        x = self.norm(self.encoder(x, src_key_padding_mask=pad))
        keep = (~pad).unsqueeze(-1).float()
        return self.decoder((x * keep).sum(1) / keep.sum(1))


# In[4]:

model = Localiser()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(2):
    model.train()
    running = 0.0
    for i, (x, pad, y) in enumerate(train_dl):
        optimizer.zero_grad()
        loss = criterion(model(x, pad), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item()
        if i % 20 == 19:
            print(f"epoch {epoch} batch {i + 1} loss {running / 20:.4f}")
            running = 0.0
    model.eval()
    with torch.no_grad():
        hits = sum((model(x, pad).argmax(1) == y).sum().item() for x, pad, y in valid_dl)
    print(f"epoch {epoch} valid acc {hits / len(valid_set):.3f}")
