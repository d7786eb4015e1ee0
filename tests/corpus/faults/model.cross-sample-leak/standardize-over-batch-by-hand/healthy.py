import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)
x = torch.randn(1500, 10)
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).long() + (x[:, 3] > 0.8).long()


class Standardize(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, h):
        centred = h - h.mean(dim=-1, keepdim=True)
        return self.gain * centred / (h.var(dim=-1, keepdim=True, unbiased=False) + 1e-5).sqrt() + self.shift


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.na = nn.Linear(10, 48), Standardize(48)
        self.b, self.nb = nn.Linear(48, 48), Standardize(48)
        self.c = nn.Linear(48, 3)

    def forward(self, h):
        h = F.gelu(self.na(self.a(h)))
        h = F.gelu(self.nb(self.b(h)))
        return self.c(h)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(3):
    for rows in torch.randperm(1500).split(50):
        loss = F.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
