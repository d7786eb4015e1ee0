"""Next-note model: nn.TransformerEncoder, time first, with a mask built by hand."""

import torch
from torch import nn

torch.manual_seed(205)
NOTES, T = 16, 18


def songs(n):
    start, step = torch.randint(0, NOTES, (n,)), torch.randint(1, 5, (n,))
    x = (start + step * torch.arange(T + 1)[:, None]) % NOTES
    return torch.where(torch.rand(x.shape) < 0.05, torch.randint(0, NOTES, x.shape), x)


class Notes(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.emb, self.pos = nn.Embedding(NOTES, d), nn.Embedding(T, d)
        layer = nn.TransformerEncoderLayer(d, 4, 64, dropout=0.0, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(d, NOTES)

    def forward(self, x):
        t = x.size(0)
        hide = torch.ones(t, t).triu(diagonal=0).bool()
        h = self.emb(x) + self.pos(torch.arange(t)).unsqueeze(1)
        return self.out(self.enc(h, mask=hide))


net, data = Notes(), songs(600)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
ce = nn.CrossEntropyLoss()
for step in range(90):
    x = data[:, torch.randint(0, 500, (24,))]
    loss = ce(net(x[:-1]).reshape(-1, NOTES), x[1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 15 == 14:
        with torch.no_grad():
            v = data[:, 500:]
            print(step + 1, round(loss.item(), 3), round(ce(net(v[:-1]).reshape(-1, NOTES), v[1:].reshape(-1)).item(), 3))
