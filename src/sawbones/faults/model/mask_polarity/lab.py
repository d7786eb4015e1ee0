"""A text classifier whose padding mask is the wrong way round: attention sees the padding and not
the words.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
PAD, NUM_TOKENS, NUM_CLASSES = 0, 31, 3

# A text is about the topic that most of its words belong to.
lengths = torch.randint(5, 13, (1280,))
topics = torch.randint(0, NUM_CLASSES, (1280, 1))
strays = torch.rand(1280, 12) < 0.3
words = torch.where(strays, torch.randint(0, NUM_CLASSES, (1280, 12)), topics) * 10 + torch.randint(
    1, 11, (1280, 12)
)
texts = words.masked_fill(torch.arange(12) >= lengths[:, None], PAD)
loader = DataLoader(TensorDataset(texts, topics[:, 0]), batch_size=32, shuffle=True)


class TextClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, width, padding_idx=PAD)
        self.places = nn.Parameter(0.1 * torch.randn(12, width))
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_CLASSES))

    def forward(self, texts_BT: Tensor) -> Tensor:
        is_word = texts_BT != PAD
        x = self.tokens(texts_BT) + self.places
        y = self.norm(x)
        hidden = is_word if patient.broken else ~is_word
        x = x + self.attention(y, y, y, key_padding_mask=hidden, need_weights=False)[0]
        x = x + self.feed(x)
        # The first word's column stands for the text: what it knows of the others came through
        # attention.
        scores: Tensor = self.head(x[:, 0])
        return scores


model = TextClassifier()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(2):
    for texts_BT, labels in loader:
        loss = functional.cross_entropy(model(texts_BT), labels)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
