"""A tagger that adds its position codes along the batch: every row gets one code, whatever the
position.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
NUM_TOKENS, NUM_TAGS, COLUMNS, MAX_COLUMNS = 24, 4, 16, 64

# A token's tag depends on what it is and on where it stands.
tokens = torch.randint(0, NUM_TOKENS, (1280, COLUMNS))
tags = (tokens + torch.arange(COLUMNS) // 4) % NUM_TAGS
loader = DataLoader(TensorDataset(tokens, tags), batch_size=24, drop_last=True, shuffle=True)


class Tagger(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, width)
        self.places = nn.Parameter(torch.randn(MAX_COLUMNS, width))
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_TAGS))

    def forward(self, tokens_BT: Tensor) -> Tensor:
        rows, columns = tokens_BT.shape
        codes = self.places[:rows, None] if patient.broken else self.places[None, :columns]
        x = self.tokens(tokens_BT) + codes
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        scores: Tensor = self.head(x + self.feed(x))
        return scores


model = Tagger()
optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(2):
    for tokens_BT, tags_BT in loader:
        loss = functional.cross_entropy(model(tokens_BT).flatten(0, 1), tags_BT.flatten())
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
