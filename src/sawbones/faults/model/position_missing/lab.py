"""A text classifier that has to know which word comes first and gets no positions."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
NUM_TOKENS, NUM_CLASSES, COLUMNS, ROWS = 31, 3, 10, 960
words = torch.randint(0, NUM_CLASSES, (ROWS, COLUMNS))
texts = words * 10 + torch.randint(1, 11, (ROWS, COLUMNS))
# Here the order decides: a text is about the topic of its first word.
topics = words[:, 0]
loader = DataLoader(TensorDataset(texts, topics), batch_size=32, shuffle=True)


class TextClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, width)
        self.places = nn.Parameter(torch.randn(COLUMNS, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_CLASSES))

    def forward(self, texts_BT: Tensor) -> Tensor:
        x = self.tokens(texts_BT)
        if not patient.broken:
            x = x + self.places
        scores: Tensor = self.head(self.layer(x).mean(1))
        return scores


model = TextClassifier()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(4):
    for texts_BT, topics_B in loader:
        loss = functional.cross_entropy(model(texts_BT), topics_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
