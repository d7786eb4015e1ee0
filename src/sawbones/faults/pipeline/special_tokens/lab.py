"""A language model whose texts never end: no EOS is ever put behind them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
PAD, BOS, EOS = 0, 1, 2
WORDS = [
    "a",
    "stitch",
    "in",
    "time",
    "saves",
    "nine",
    "haste",
    "makes",
    "waste",
    "still",
    "waters",
    "run",
    "deep",
]
numbers = {word: i for i, word in enumerate(dict.fromkeys(WORDS), start=3)}
NUM_TOKENS, COLUMNS, ROWS = len(numbers) + 3, 16, 960
# A saying counts on from a random word; it is as long as it likes to be.
starts, lengths = torch.randint(0, len(numbers), (ROWS,)), torch.randint(4, 13, (ROWS,))
texts = torch.full((ROWS, COLUMNS), PAD)
for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
    saying = [BOS, *(3 + (start + i) % len(numbers) for i in range(length))]
    saying += [] if patient.broken else [EOS]
    texts[row, : len(saying)] = torch.tensor(saying)
loader = DataLoader(TensorDataset(texts), batch_size=32, shuffle=True)


class LanguageModel(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, width)
        self.places = nn.Parameter(0.1 * torch.randn(COLUMNS, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_TOKENS))

    def forward(self, texts_BT: Tensor) -> Tensor:
        num_columns = texts_BT.shape[1]
        future_TT = torch.ones(num_columns, num_columns, dtype=torch.bool).triu(1)
        read_BTC = self.tokens(texts_BT) + self.places[:num_columns]
        scores: Tensor = self.head(self.layer(read_BTC, src_mask=future_TT))
        return scores


model = LanguageModel()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(3):
    for (texts_BT,) in loader:
        loss = functional.cross_entropy(
            model(texts_BT[:, :-1]).flatten(0, 1), texts_BT[:, 1:].flatten(), ignore_index=PAD
        )
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
