"""A recurrent text classifier that reads its state at the end of texts padded on the left."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
PAD, NUM_TOKENS, NUM_CLASSES, COLUMNS, ROWS = 0, 31, 3, 12, 960
# A text is about the topic that most of its words belong to; what is left of a row is padding.
topics = torch.randint(0, NUM_CLASSES, (ROWS,))
lengths = torch.randint(4, COLUMNS + 1, (ROWS,))
strays = torch.rand(ROWS, COLUMNS) < 0.3
words = torch.where(strays, torch.randint(0, NUM_CLASSES, (ROWS, COLUMNS)), topics[:, None])
texts = words * 10 + torch.randint(1, 11, (ROWS, COLUMNS))
texts[torch.arange(COLUMNS) >= lengths[:, None]] = PAD
if patient.broken:
    texts = torch.stack(
        [row.roll(COLUMNS - int(length)) for row, length in zip(texts, lengths, strict=True)]
    )
loader = DataLoader(TensorDataset(texts, lengths, topics), batch_size=32, shuffle=True)


class TextClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, width, padding_idx=PAD)
        self.read = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, NUM_CLASSES)

    def forward(self, texts_BT: Tensor, lengths_B: Tensor) -> Tensor:
        states_BTC, _ = self.read(self.tokens(texts_BT))
        scores: Tensor = self.head(states_BTC[torch.arange(len(lengths_B)), lengths_B - 1])
        return scores


model = TextClassifier()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(3):
    for texts_BT, lengths_B, topics_B in loader:
        loss = functional.cross_entropy(model(texts_BT, lengths_B), topics_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
