"""A text model whose predictions (B, 1) meet targets (B): every prediction is held against every
target.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
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
shares = (words == 0).float().mean(1)
loader = DataLoader(TensorDataset(texts, shares), batch_size=32, shuffle=True)


class TextClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, width)
        self.places = nn.Parameter(0.1 * torch.randn(COLUMNS, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def forward(self, texts_BT: Tensor) -> Tensor:
        share: Tensor = self.head(self.layer(self.tokens(texts_BT) + self.places).mean(1))
        return share


model = TextClassifier()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(3):
    for texts_BT, shares_B in loader:
        predicted = model(texts_BT)
        predicted = predicted if patient.broken else predicted.squeeze(-1)
        loss = (predicted - shares_B).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
