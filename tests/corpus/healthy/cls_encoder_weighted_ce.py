"""Ticket routing: encoder with a class token, right padding, class weights from the counts of the training part."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(90)
np.random.seed(90)
torch.manual_seed(90)
PAD, CLS = 0, 1


def ticket():
    y = random.choices([0, 1, 2], [5, 3, 2])[0]
    w = [random.randint(11, 49) for _ in range(random.randint(6, 16))]
    for _ in range(2):
        w[random.randrange(len(w))] = 2 + 3 * y + random.randint(0, 2)
    return [CLS] + w, y


def collate(rows):
    xs, ys = zip(*rows)
    k = max(map(len, xs))
    return torch.tensor([x + [PAD] * (k - len(x)) for x in xs]), torch.tensor(ys)


class Router(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.e, self.p = nn.Embedding(50, d, padding_idx=PAD), nn.Parameter(torch.randn(20, d) * 0.1)
        layer = nn.TransformerEncoderLayer(d, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.t = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(d), enable_nested_tensor=False)
        self.o = nn.Linear(d, 3)

    def forward(self, x):
        h = self.t(self.e(x) + self.p[: x.size(1)], src_key_padding_mask=x.eq(PAD))
        return self.o(h[:, 0])


train, test = [ticket() for _ in range(960)], [ticket() for _ in range(128)]
counts = torch.bincount(torch.tensor([y for _, y in train]), minlength=3).float()
crit = nn.CrossEntropyLoss(weight=counts.sum() / (3 * counts))
net = Router()
opt = torch.optim.Adam(net.parameters(), 2e-3)
for epoch in range(3):
    net.train()
    for x, y in DataLoader(train, 32, shuffle=True, collate_fn=collate):
        loss = crit(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        x, y = collate(test)
        print(epoch, loss.item(), (net(x).argmax(1) == y).float().mean().item())
