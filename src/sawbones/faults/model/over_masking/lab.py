"""A text classifier whose attention also hides the only word of a one-word text."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
NUM_TOKENS, NUM_CLASSES, COLUMNS, ROWS = 31, 3, 10, 960
# A text is about the topic that most of its words belong to.
topics = torch.randint(0, NUM_CLASSES, (ROWS,))
strays = torch.rand(ROWS, COLUMNS) < 0.3
words = torch.where(strays, torch.randint(0, NUM_CLASSES, (ROWS, COLUMNS)), topics[:, None])
texts = words * 10 + torch.randint(1, 11, (ROWS, COLUMNS))
lengths = torch.randint(1, COLUMNS + 1, (ROWS, 1))
texts = texts.masked_fill(torch.arange(COLUMNS) >= lengths, 0)
loader = DataLoader(TensorDataset(texts, topics), batch_size=32, shuffle=True)


class TextClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, width)
        self.places = nn.Parameter(0.1 * torch.randn(COLUMNS, width))
        self.norm = nn.LayerNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)
        for projection in (self.query, self.key, self.value):
            nn.init.xavier_uniform_(projection.weight)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_CLASSES))

    def forward(self, texts_BT: Tensor) -> Tensor:
        x = self.tokens(texts_BT) + self.places
        y = self.norm(x)
        query, key, value = (self._split(layer(y)) for layer in (self.query, self.key, self.value))
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        hidden = (texts_BT == 0)[:, None, None, :]
        if patient.broken:
            hidden = hidden | torch.eye(COLUMNS, dtype=torch.bool)
        mixed = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1) @ value
        x = x + self.output(mixed.transpose(1, 2).reshape(x.shape))
        x = x + self.feed(x)
        topic: Tensor = self.head(x[:, 0])
        return topic

    def _split(self, x_BTC: Tensor) -> Tensor:
        batch, columns, width = x_BTC.shape
        return x_BTC.view(batch, columns, 4, width // 4).transpose(1, 2)


model = TextClassifier()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(3):
    for texts_BT, topics_B in loader:
        loss = functional.cross_entropy(model(texts_BT), topics_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
