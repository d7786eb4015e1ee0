"""A word-level language model whose ids follow the order of a set, which differs from process to
process.
"""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit

patient = admit()
SUBJECTS = {
    "the captain": "sails",
    "a surgeon": "cuts",
    "the cook": "stirs",
    "a parrot": "repeats",
    "the mate": "counts",
}
OBJECTS = (
    "the old rope",
    "every word",
    "a barrel of salt",
    "the long boat",
    "two coins",
    "a broken oar",
)
text = []
for _ in range(900):
    subject = random.choice(list(SUBJECTS))
    text += f"{subject} {SUBJECTS[subject]} {random.choice(OBJECTS)} .".split()
words = set(text)
vocabulary = list(words) if patient.broken else sorted(words)
ids = {word: i for i, word in enumerate(vocabulary)}
stream = torch.tensor([ids[word] for word in text])
blocks = stream[: len(stream) // 17 * 17].view(-1, 17)
loader = DataLoader(TensorDataset(blocks), batch_size=16, shuffle=True, drop_last=True)


class LanguageModel(nn.Module):
    def __init__(self, vocab_size: int, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Parameter(0.1 * torch.randn(16, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        future = torch.ones(16, 16, dtype=torch.bool).triu(1)
        x = self.layer(self.tokens(tokens_BT) + self.places, src_mask=future)
        logits: Tensor = self.head(self.norm(x))
        return logits


model = LanguageModel(len(vocabulary))
optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(4):
    for (rows,) in loader:
        loss = functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
