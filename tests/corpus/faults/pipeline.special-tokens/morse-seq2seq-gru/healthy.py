import random
from dataclasses import dataclass

import torch
from torch import Tensor, nn

SYMBOLS = "acdeghilmnorstu"
PAD, BOS, EOS = 0, 1, 2


@dataclass
class Config:
    hidden: int = 64
    steps: int = 110
    batch: int = 32
    lr: float = 5e-3
    seed: int = 90


class Vocabulary:
    def __init__(self, symbols: str):
        self.index = {s: i + 3 for i, s in enumerate(symbols)}
        self.size = len(symbols) + 3

    def encode(self, text: str) -> list[int]:
        return [self.index[c] for c in text]


def pad(rows: list[list[int]]) -> Tensor:
    width = max(len(r) for r in rows)
    return torch.tensor([r + [PAD] * (width - len(r)) for r in rows])


class Rotor(nn.Module):
    """Reads a word, writes the word with every letter replaced by the letter's successor."""

    def __init__(self, size: int, hidden: int):
        super().__init__()
        self.source = nn.Embedding(size, hidden, padding_idx=PAD)
        self.encoder = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.target = nn.Embedding(size, hidden, padding_idx=PAD)
        self.decoder = nn.GRU(hidden, hidden, batch_first=True)
        self.query, self.key = nn.Linear(hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.out = nn.Linear(3 * hidden, size)

    def forward(self, src: Tensor, lengths: Tensor, tgt: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.source(src), lengths, batch_first=True, enforce_sorted=False)
        memory, _ = nn.utils.rnn.pad_packed_sequence(self.encoder(packed)[0], batch_first=True)
        states, _ = self.decoder(self.target(tgt))
        scores = self.query(states) @ self.key(memory).transpose(1, 2) / memory.shape[-1] ** 0.5
        outside = torch.arange(memory.shape[1])[None] >= lengths[:, None]
        weights = scores.masked_fill(outside[:, None], float("-inf")).softmax(-1)
        return self.out(torch.cat([states, weights @ memory], -1))


def main(cfg: Config) -> None:
    random.seed(cfg.seed)
    torch.manual_seed(cfg.seed)
    vocabulary = Vocabulary(SYMBOLS)
    model = Rotor(vocabulary.size, cfg.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    shifted = SYMBOLS[1:] + SYMBOLS[0]
    for step in range(cfg.steps):
        words = ["".join(random.choices(SYMBOLS, k=random.randint(3, 9))) for _ in range(cfg.batch)]
        answers = [w.translate(str.maketrans(SYMBOLS, shifted)) for w in words]
        src = pad([vocabulary.encode(w) for w in words])
        tgt = pad([[BOS, *vocabulary.encode(a), EOS] for a in answers])
        logits = model(src, torch.tensor([len(w) for w in words]), tgt[:, :-1])
        loss = criterion(logits.flatten(0, 1), tgt[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")


main(Config())
