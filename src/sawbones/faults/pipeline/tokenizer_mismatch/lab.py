"""A language model whose held-out texts are numbered by a vocabulary of their own."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
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
COLUMNS, ROWS = 12, 960


def vocabulary(texts: list[list[str]]) -> dict[str, int]:
    """Words in the order in which they come."""
    return {
        word: i for i, word in enumerate(dict.fromkeys(word for text in texts for word in text))
    }


def sayings(count: int) -> list[list[str]]:
    """A saying counts on from a random word; the first words are the most popular."""
    starts = (len(WORDS) * torch.rand(count) ** 2).long().tolist()
    return [[WORDS[(start + i // 2) % len(WORDS)] for i in range(COLUMNS)] for start in starts]


train, rest = sayings(ROWS), sayings(160)
numbers = vocabulary(train)
held_out_numbers = vocabulary(rest) if patient.broken else numbers
NUM_TOKENS = len(set(WORDS))
loader = DataLoader(
    TensorDataset(torch.tensor([[numbers[w] for w in text] for text in train])),
    batch_size=32,
    shuffle=True,
)
held_out = DataLoader(
    TensorDataset(torch.tensor([[held_out_numbers[w] for w in text] for text in rest])),
    batch_size=80,
)


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


def validate() -> float:
    model.eval()
    with torch.no_grad():
        total = sum(
            float(functional.cross_entropy(model(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten()))
            for (t,) in held_out
        )
    model.train()
    return total / len(held_out)


for _ in range(3):
    for (texts_BT,) in loader:
        loss = functional.cross_entropy(
            model(texts_BT[:, :-1]).flatten(0, 1), texts_BT[:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
    print(f"held-out loss {validate():.4f}")
patient.discharge()
