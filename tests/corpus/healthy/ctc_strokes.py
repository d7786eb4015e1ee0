"""Digit strings from stretched strokes with CTC."""

import random

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
proto = torch.randn(6, 8)


def item():
    y = torch.randint(1, 6, (random.randint(2, 4),))
    rows = []
    for d in y.tolist():
        rows += [proto[d]] * random.randint(2, 4) + [proto[0]]
    x = torch.stack(rows)
    return x + 0.2 * torch.randn_like(x), y


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 6)

    def forward(self, x):
        return self.out(self.rnn(x)[0]).log_softmax(-1)


data = [item() for _ in range(800)]
net, ctc = Reader(), nn.CTCLoss(blank=0, zero_infinity=True)
opt = torch.optim.Adam(net.parameters(), 5e-3)
for epoch in range(3):
    random.shuffle(data)
    for i in range(0, 800, 32):
        xs, ys = zip(*data[i : i + 32])
        lp = net(pad_sequence(xs, True)).transpose(0, 1)
        loss = ctc(lp, torch.cat(ys), torch.tensor([len(a) for a in xs]), torch.tensor([len(a) for a in ys]))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
    print(epoch, loss.item())
