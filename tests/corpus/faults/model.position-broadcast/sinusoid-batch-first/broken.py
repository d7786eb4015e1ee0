"""Per-position comparison task with an nn.TransformerEncoder and sinusoidal codes.

For every slot the model says whether its digit equals, exceeds or is below the digit two slots earlier.
"""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(77)

DIGITS, LENGTH, D_MODEL = 8, 12, 48
IGNORE = -100


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    digits = torch.randint(0, DIGITS, (n, LENGTH), generator=g)
    labels = torch.full_like(digits, IGNORE)
    labels[:, 2:] = torch.sign(digits[:, 2:] - digits[:, :-2]) + 1
    return TensorDataset(digits, labels)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=128):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(100.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


class Comparer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(DIGITS, D_MODEL)
        nn.init.normal_(self.embed.weight, std=0.5)
        self.pos = PositionalEncoding(D_MODEL)
        layer = nn.TransformerEncoderLayer(
            D_MODEL, 4, 128, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(D_MODEL), enable_nested_tensor=False)
        self.head = nn.Linear(D_MODEL, 3)

    def forward(self, digits):
        return self.head(self.encoder(self.pos(self.embed(digits))))


train_loader = DataLoader(make_data(1280, seed=1), batch_size=32, shuffle=True)
test_loader = DataLoader(make_data(128, seed=2), batch_size=64)

model = Comparer()
criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(1, 4):
    model.train()
    total = 0.0
    for digits, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(digits).flatten(0, 1), labels.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()

    model.eval()
    correct = count = 0
    with torch.no_grad():
        for digits, labels in test_loader:
            scored = labels != IGNORE
            correct += (model(digits).argmax(-1) == labels)[scored].sum().item()
            count += scored.sum().item()
    print(f"epoch {epoch}: train loss {total / len(train_loader):.4f}, test accuracy {correct / count:.3f}")
