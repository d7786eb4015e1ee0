import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(11)
torch.manual_seed(11)
PAD, BOS, EOS = 0, 1, 2
LETTERS = list(range(3, 15))


def make_pair():
    word = [random.choice(LETTERS) for _ in range(random.randint(4, 8))]
    return torch.tensor(word), torch.tensor([BOS] + sorted(word) + [EOS])


def collate(rows):
    return pad_sequence([r[0] for r in rows], True, PAD), pad_sequence([r[1] for r in rows], True, PAD)


class Sorter(nn.Module):
    def __init__(self, vocab=15, width=32):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width, padding_idx=PAD)
        self.places = nn.Parameter(torch.randn(1, 12, width) * 0.1)
        enc = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        dec = nn.TransformerDecoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(enc, 1, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(dec, 2)
        self.out = nn.Linear(width, vocab)

    def embed(self, ids):
        return self.tokens(ids) + self.places[:, : ids.shape[1]]

    def forward(self, src, tgt):
        src_pad, tgt_pad = src == PAD, tgt == PAD
        memory = self.encoder(self.embed(src), src_key_padding_mask=src_pad)
        ahead = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).triu(1)
        hidden = self.decoder(self.embed(tgt), memory, ahead, tgt_key_padding_mask=tgt_pad, memory_key_padding_mask=src_pad)
        return self.out(hidden)


pairs = [make_pair() for _ in range(640)]
loader = DataLoader(pairs, batch_size=32, shuffle=True, collate_fn=collate, drop_last=True)
net = Sorter()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for epoch in range(3):
    total = 0.0
    for src, tgt in loader:
        opt.zero_grad()
        scores = net(src, tgt[:, :-1])
        loss = criterion(scores.flatten(0, 1), tgt[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.3f}")
