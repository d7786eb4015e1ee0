"""Sequence-to-sequence with two GRUs and Luong attention, everything time-first: (time, batch, features)."""
import random

import numpy as np
import torch
from torch import nn, optim
import torch.nn.functional as F

SEED = 21
torch.manual_seed(SEED)
np.random.seed(SEED)
random.seed(SEED)

VOCAB, HIDDEN, EMB = 18, 48, 24
SOS = 1
BATCH, STEPS = 20, 110


def make_batch(rng, batch=BATCH):
    """Rotate the source by two and swap the two halves of the alphabet."""
    length = rng.randint(6, 10)
    src = rng.randint(2, VOCAB, size=(length, batch))
    moved = np.roll(src, 2, axis=0)
    tgt = np.where(moved >= 10, moved - 8, moved + 8)
    return torch.as_tensor(src), torch.as_tensor(tgt)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, EMB)
        self.gru = nn.GRU(EMB, HIDDEN // 2, bidirectional=True)

    def forward(self, src):
        outputs, hidden = self.gru(self.embedding(src))
        return outputs, torch.cat([hidden[0], hidden[1]], dim=-1).unsqueeze(0)


class Attn(nn.Module):
    def __init__(self):
        super().__init__()
        self.general = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, hidden, encoder_outputs):
        energy = self.general(encoder_outputs)
        energies = torch.sum(hidden * energy, dim=2)
        return F.softmax(energies, dim=1)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, EMB)
        self.gru = nn.GRU(EMB + HIDDEN, HIDDEN)
        self.attn = Attn()
        self.concat = nn.Linear(2 * HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, VOCAB)

    def step(self, token, hidden, context, encoder_outputs):
        rnn_in = torch.cat([self.embedding(token), context], dim=-1).unsqueeze(0)
        out, hidden = self.gru(rnn_in, hidden)
        weights = self.attn(out, encoder_outputs)
        context = (weights.unsqueeze(-1) * encoder_outputs).sum(0)
        mixed = torch.tanh(self.concat(torch.cat([out.squeeze(0), context], dim=-1)))
        return self.out(mixed), hidden, context


encoder, decoder = Encoder(), Decoder()
params = [*encoder.parameters(), *decoder.parameters()]
optimizer = optim.Adam(params, lr=6e-3)
rng = np.random.RandomState(SEED)


def forward(src, tgt):
    encoder_outputs, hidden = encoder(src)
    token = torch.full((src.size(1),), SOS)
    context = torch.zeros(src.size(1), HIDDEN)
    logits = []
    for t in range(tgt.size(0)):
        out, hidden, context = decoder.step(token, hidden, context, encoder_outputs)
        logits.append(out)
        token = tgt[t]
    return torch.stack(logits)


running = 0.0
for step in range(1, STEPS + 1):
    src, tgt = make_batch(rng)
    logits = forward(src, tgt)
    loss = F.cross_entropy(logits.reshape(-1, VOCAB), tgt.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 2.0)
    optimizer.step()
    running += loss.item()
    if step % 22 == 0:
        print(f"step {step} loss {running / 22:.4f}")
        running = 0.0

encoder.eval()
decoder.eval()
with torch.no_grad():
    src, tgt = make_batch(np.random.RandomState(77), 64)
    acc = (forward(src, tgt).argmax(-1) == tgt).float().mean().item()
print(f"held-out token accuracy {acc:.3f}")
