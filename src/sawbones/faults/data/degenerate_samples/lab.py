"""A text classifier that meets a text without a single word."""

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
lengths[137] = 0  # nothing was left of this one after cleaning
texts[torch.arange(COLUMNS) >= lengths[:, None]] = PAD
if not patient.broken:
    texts, topics = texts[lengths > 0], topics[lengths > 0]
loader = DataLoader(TensorDataset(texts, topics), batch_size=32, shuffle=True)


class TextClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, width, padding_idx=PAD)
        self.mix = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_CLASSES))

    def forward(self, texts_BT: Tensor) -> Tensor:
        real_BT1 = (texts_BT != PAD).unsqueeze(2)
        mixed_BTC = self.mix(self.tokens(texts_BT)) * real_BT1
        scores: Tensor = self.head(mixed_BTC.sum(1) / real_BT1.sum(1))
        return scores


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
