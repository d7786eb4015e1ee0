# Grapheme-to-phoneme conversion: GRU encoder, attentive GRU decoder.
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(21)
np.random.seed(21)
torch.manual_seed(21)

PAD, SOS, EOS = 0, 1, 2
LETTERS, PHONES = 29, 35
DIGRAPHS = {(5, 10): 30, (12, 10): 31, (20, 10): 32, (9, 16): 33, (23, 22): 34}
SOUND = {c: 3 + (c * 7) % 26 for c in range(3, LETTERS)}


def pronounce(word):
    out, i = [], 0
    while i < len(word):
        pair = tuple(word[i : i + 2])
        if pair in DIGRAPHS:
            out.append(DIGRAPHS[pair])
            i += 2
        else:
            out.append(SOUND[word[i]])
            i += 1
    return out


def make_word():
    word = []
    while len(word) < random.randint(3, 8):
        if random.random() < 0.25:
            word += random.choice(list(DIGRAPHS))
        else:
            word.append(random.randrange(3, LETTERS))
    return word


def to_batch(words):
    phones = [pronounce(w) for w in words]
    n, m = max(map(len, words)), max(map(len, phones))
    src = torch.full((len(words), n), PAD)
    tgt = torch.full((len(words), m + 2), PAD)
    for i, (w, p) in enumerate(zip(words, phones, strict=False)):
        src[i, : len(w)] = torch.tensor(w)
        tgt[i, : len(p) + 2] = torch.tensor([SOS, *p, EOS])
    return src, tgt


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.emb = nn.Embedding(LETTERS, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim // 2, bidirectional=True, batch_first=True)

    def forward(self, src):
        lengths = (src != PAD).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.emb(src), lengths, batch_first=True, enforce_sorted=False)
        states, last = self.rnn(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)
        return states, torch.cat([last[0], last[1]], dim=-1)


class Decoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.emb = nn.Embedding(PHONES, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.query = nn.Linear(dim, dim, bias=False)
        self.mix = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, PHONES)

    def forward(self, tokens, memory, memory_pad, hidden):
        h, hidden = self.rnn(self.emb(tokens), hidden)
        scores = torch.einsum("btd,bsd->bts", self.query(h), memory) / memory.size(-1) ** 0.5
        weights = scores.masked_fill(memory_pad[:, None, :], float("-inf")).softmax(-1)
        context = torch.einsum("bts,bsd->btd", weights, memory)
        return self.out(torch.tanh(self.mix(torch.cat([h, context], -1)))), hidden


encoder, decoder = Encoder(64), Decoder(64)
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.Adam(params, lr=4e-3)

train_words = [make_word() for _ in range(1500)]
test_words = [make_word() for _ in range(128)]

for epoch in range(4):
    encoder.train()
    decoder.train()
    random.shuffle(train_words)
    running = 0.0
    batches = [train_words[i : i + 50] for i in range(0, len(train_words), 50)]
    for words in batches:
        src, tgt = to_batch(words)
        memory, hidden = encoder(src)
        logits, _ = decoder(tgt[:, 1:], memory, src == PAD, hidden.unsqueeze(0))
        loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        running += loss.item()

    encoder.eval()
    decoder.eval()
    with torch.no_grad():
        src, tgt = to_batch(test_words)
        memory, hidden = encoder(src)
        hidden = hidden.unsqueeze(0)
        token = torch.full((len(src), 1), SOS)
        guess = []
        for _ in range(tgt.size(1) - 1):
            logits, hidden = decoder(token, memory, src == PAD, hidden)
            token = logits.argmax(-1)
            guess.append(token)
        guess = torch.cat(guess, 1)
        real = tgt[:, 1:] != PAD
        accuracy = (guess == tgt[:, 1:])[real].float().mean()
    print(f"epoch {epoch}: loss {running / len(batches):.4f}, greedy phone accuracy {accuracy:.3f}")
