"""A language model whose attention may look at the tokens it has to predict."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW
from torch.utils.data import DataLoader, TensorDataset

from sawbones.lab.patient import admit
from sawbones.lab.texts import text_data, token_blocks

patient = admit()
data = text_data("lm", patient.seed, num_train=400)
blocks = token_blocks(data, width=25)
loader = DataLoader(TensorDataset(blocks), batch_size=32, shuffle=True, drop_last=True)


class Block(nn.Module):
    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x_BTC: Tensor) -> Tensor:
        batch, columns, width = x_BTC.shape
        parts = self.query_key_value(self.norm_attention(x_BTC)).view(
            batch, columns, 3, self.num_heads, -1
        )
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, is_causal=not patient.broken
        )
        x_BTC = x_BTC + self.output(mixed.transpose(1, 2).reshape(batch, columns, width))
        result: Tensor = x_BTC + self.feed(x_BTC)
        return result


class LanguageModel(nn.Module):
    def __init__(self, vocab_size: int, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(24, width)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size, bias=False)
        for table in (self.tokens, self.places, self.head):
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, tokens_BT: Tensor) -> Tensor:
        x = self.tokens(tokens_BT) + self.places(torch.arange(tokens_BT.shape[1]))
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits


model = LanguageModel(data.tokenizer.vocab_size)
optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
patient.watch(model)

for _ in range(4):
    for (rows,) in loader:
        logits = model(rows[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        patient.record(loss)
        optimizer.step()
patient.discharge()
