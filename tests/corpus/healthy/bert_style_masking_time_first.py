"""Masked-token training with 80/10/10 corruption; most targets are ignored on purpose."""

import torch
from torch import nn

torch.manual_seed(114)
SYMBOLS, MASK, LENGTH = 18, 18, 20


def sequences(n):
    start = torch.randint(0, SYMBOLS, (1, n))
    stride = torch.randint(1, 4, (1, n))
    return (start + stride * torch.arange(LENGTH)[:, None]) % SYMBOLS


def corrupt(ids):
    chosen = torch.rand(ids.shape) < 0.2
    chosen[0] |= ~chosen.any(0)
    dice = torch.rand(ids.shape)
    noisy = ids.masked_fill(chosen & (dice < 0.8), MASK)
    noisy = torch.where(chosen & (dice > 0.9), torch.randint(0, SYMBOLS, ids.shape), noisy)
    return noisy, ids.masked_fill(~chosen, -100)


class Masked(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.tok = nn.Embedding(SYMBOLS + 1, width)
        self.pos = nn.Parameter(torch.randn(LENGTH, 1, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, 4, 96, dropout=0.1, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.out = nn.Linear(width, SYMBOLS)

    def forward(self, ids):
        return self.out(self.encoder(self.tok(ids) + self.pos[: len(ids)]))


train, held = sequences(640), sequences(96)
held_x, held_y = corrupt(held)
net = Masked()
opt = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.0)
ce = nn.CrossEntropyLoss()
for epoch in range(5):
    net.train()
    for cols in torch.randperm(640).split(32):
        x, y = corrupt(train[:, cols])
        loss = ce(net(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(epoch, round(loss.item(), 3), round(ce(net(held_x).flatten(0, 1), held_y.flatten()).item(), 3))
