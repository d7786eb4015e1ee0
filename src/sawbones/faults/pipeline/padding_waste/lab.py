"""A text classifier whose short texts are all padded to the longest that could ever come."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
PAD, NUM_TOKENS, NUM_CLASSES, COLUMNS, ROWS = 0, 31, 3, 64, 960
# A text is about the topic that most of its words belong to; what is left of a row is padding.
topics = torch.randint(0, NUM_CLASSES, (ROWS,))
lengths = torch.randint(4, 14, (ROWS,))
strays = torch.rand(ROWS, COLUMNS) < 0.3
words = torch.where(strays, torch.randint(0, NUM_CLASSES, (ROWS, COLUMNS)), topics[:, None])
texts = words * 10 + torch.randint(1, 11, (ROWS, COLUMNS))
texts[torch.arange(COLUMNS) >= lengths[:, None]] = PAD


def cut_to_longest(rows: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    texts_BT, lengths_B, topics_B = (torch.stack(column) for column in zip(*rows, strict=True))
    return texts_BT[:, : int(lengths_B.max())], lengths_B, topics_B


data = TensorDataset(texts, lengths, topics)
collate = None if patient.broken else cut_to_longest
loader = DataLoader(data, batch_size=32, shuffle=True, collate_fn=collate)


class TextClassifier(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(NUM_TOKENS, width, padding_idx=PAD)
        self.places = nn.Parameter(0.1 * torch.randn(COLUMNS, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, NUM_CLASSES))

    def forward(self, texts_BT: Tensor) -> Tensor:
        masks_BT = texts_BT == PAD
        read_BTC = self.layer(
            self.tokens(texts_BT) + self.places[: texts_BT.shape[1]], src_key_padding_mask=masks_BT
        )
        real_BT1 = (~masks_BT).unsqueeze(2)
        scores: Tensor = self.head((read_BTC * real_BT1).sum(1) / real_BT1.sum(1))
        return scores


model = TextClassifier()
optimizer = AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(3):
    for texts_BT, _, topics_B in loader:
        loss = functional.cross_entropy(model(texts_BT), topics_B)
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
