import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(37)
V, L, D, H = 16, 12, 64, 2
ids = torch.randint(2, V, (1000, L))
where = torch.randint(1, L - 1, (1000,))
ids[torch.arange(1000), where] = 1
label = ids[torch.arange(1000), where + 1] % 4


def attend(q, k, v):
    weights = (q @ k.transpose(-2, -1) * q.size(-1) ** 0.5).softmax(-1)
    return weights @ v


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.outp = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.ln = nn.LayerNorm(D)

    def forward(self, x):
        q, k, v = (z.view(len(x), L, H, D // H).transpose(1, 2) for z in self.inp(self.ln(x)).chunk(3, -1))
        return x + self.outp(attend(q, k, v).transpose(1, 2).reshape(len(x), L, D))


class Finder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, D), nn.Embedding(L, D)
        self.layers = nn.Sequential(Layer(), Layer())
        self.cls = nn.Linear(D, 4)

    def forward(self, t):
        return self.cls(self.layers(self.tok(t) + self.pos.weight).mean(1))


net = Finder()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for i in torch.randperm(1000).split(50):
        loss = F.cross_entropy(net(ids[i]), label[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
