"""Sequence-to-sequence number reader (digits to words) with an encoder and a decoder that have an optimizer each."""

import random

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence

PAD, SOS, EOS = 0, 1, 2
DIGITS = "0123456789"
UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
OUT_VOCAB = len(UNITS) + 3
IN_VOCAB = len(DIGITS) + 1
HIDDEN = 48


def sample_pair(rng):
    digits = [rng.randrange(10) for _ in range(rng.randint(2, 4))]
    source = torch.tensor([d + 1 for d in digits])
    target = torch.tensor([d + 3 for d in reversed(digits)] + [EOS])
    return source, target


def batches(pairs, batch_size, rng):
    order = list(range(len(pairs)))
    rng.shuffle(order)
    for start in range(0, len(order), batch_size):
        chosen = [pairs[i] for i in order[start : start + batch_size]]
        lengths = torch.tensor([len(s) for s, _ in chosen])
        yield (
            pad_sequence([s for s, _ in chosen], batch_first=True),
            lengths,
            pad_sequence([t for _, t in chosen], batch_first=True),
        )


class EncoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(IN_VOCAB, HIDDEN, padding_idx=PAD)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True)

    def forward(self, source, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(source), lengths, batch_first=True, enforce_sorted=False)
        _, hidden = self.gru(packed)
        return hidden


class DecoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(OUT_VOCAB, HIDDEN, padding_idx=PAD)
        self.gru = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, OUT_VOCAB)

    def forward(self, tokens, hidden):
        states, _ = self.gru(self.embedding(tokens), hidden)
        return self.out(states)


def decode_loss(encoder, decoder, criterion, source, lengths, target):
    hidden = encoder(source, lengths)
    start = torch.full((target.size(0), 1), SOS)
    logits = decoder(torch.cat([start, target[:, :-1]], dim=1), hidden)
    return criterion(logits.reshape(-1, OUT_VOCAB), target.reshape(-1))


def train_epoch(pairs, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion, rng):
    total, count = 0.0, 0
    for source, lengths, target in batches(pairs, 32, rng):
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()

        loss = decode_loss(encoder, decoder, criterion, source, lengths, target)
        loss.backward()

        decoder_optimizer.step()
        total += loss.item()
        count += 1
    return total / count


def main():
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)
    rng = random.Random(4)
    pairs = [sample_pair(rng) for _ in range(960)]
    held_out = [sample_pair(rng) for _ in range(128)]

    encoder, decoder = EncoderRNN(), DecoderRNN()
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)

    for epoch in range(1, 6):
        train_loss = train_epoch(pairs, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion, rng)
        encoder.eval()
        decoder.eval()
        with torch.no_grad():
            source, lengths, target = next(batches(held_out, 128, random.Random(0)))
            held_out_loss = decode_loss(encoder, decoder, criterion, source, lengths, target).item()
        encoder.train()
        decoder.train()
        print(f"epoch {epoch}: train {train_loss:.3f}  held out {held_out_loss:.3f}")


if __name__ == "__main__":
    main()
