"""Vector-quantised autoencoder: straight-through estimator, codebook and commitment terms."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(111)


def textures(n):
    f = torch.randint(1, 5, (n, 1)).float()
    t = torch.arange(32) / 32
    x = torch.sin(2 * torch.pi * f * t + 6 * torch.rand(n, 1)) + 0.1 * torch.randn(n, 32)
    return x.unsqueeze(1) / 0.72


class VQ(nn.Module):
    def __init__(self, codes=24, dim=12):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 24, 4, 2, 1), nn.ReLU(), nn.Conv1d(24, dim, 4, 2, 1))
        self.book = nn.Embedding(codes, dim)
        nn.init.uniform_(self.book.weight, -1.0, 1.0)
        self.dec = nn.Sequential(nn.ConvTranspose1d(dim, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose1d(24, 1, 4, 2, 1))

    def forward(self, x):
        z = self.enc(x).transpose(1, 2)
        code = torch.cdist(z, self.book.weight.expand(len(z), -1, -1)).argmin(-1)
        q = self.book(code)
        book_loss = F.mse_loss(q, z.detach())
        commit = F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return self.dec(q.transpose(1, 2)), book_loss + 0.25 * commit


x = textures(700)
net = VQ()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(4):
    net.train()
    for i in torch.randperm(600).split(24):
        out, extra = net(x[i])
        loss = F.mse_loss(out, x[i]) + extra
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        out, _ = net(x[600:])
    print(f"{epoch} loss {loss.item():.4f} reconstruction {F.mse_loss(out, x[600:]).item():.4f}")
