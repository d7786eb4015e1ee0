import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(29)
tokens = torch.randint(0, 24, (900, 9))
tokens[:, 0] = torch.randint(0, 9, (900,)) % 8 + 1
answer = tokens[torch.arange(900), tokens[:, 0]] % 6


class SelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.softmax = nn.Softmax(dim=2)
        self.scale = dim**-0.5

    def forward(self, x):
        affinity = self.to_q(x).bmm(self.to_k(x).mT) * self.scale
        return self.softmax(affinity).bmm(self.to_v(x))


class Lookup(nn.Module):
    def __init__(self, dim=40):
        super().__init__()
        self.word = nn.Embedding(24, dim)
        self.slot = nn.Embedding(9, dim)
        self.attn = nn.ModuleList([SelfAttention(dim) for _ in range(2)])
        self.norm = nn.ModuleList([nn.LayerNorm(dim) for _ in range(2)])
        self.out = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, 6))

    def forward(self, ids):
        h = self.word(ids) + self.slot(torch.arange(9))
        for attn, norm in zip(self.attn, self.norm):
            h = h + attn(norm(h))
        return self.out(h[:, 0])


model = Lookup()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(5):
    for ids, target in DataLoader(TensorDataset(tokens, answer), batch_size=45, shuffle=True):
        loss = loss_fn(model(ids), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, f"{loss.item():.3f}")
