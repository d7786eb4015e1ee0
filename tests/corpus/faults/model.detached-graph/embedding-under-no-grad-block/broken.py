"""Pick the odd word out: embeddings, a scoring network and a pairwise comparison."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(203)
WORDS, GROUPS = 60, 6


def quizzes(n):
    group = torch.randint(0, GROUPS, (n, 1))
    words = group * 10 + torch.randint(0, 10, (n, 5))
    odd = torch.randint(0, 5, (n,))
    other = (group[:, 0] + torch.randint(1, GROUPS, (n,))) % GROUPS
    words[torch.arange(n), odd] = other * 10 + torch.randint(0, 10, (n,))
    return words, odd


class OddOneOut(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.table = nn.Embedding(WORDS, d)
        self.mix = nn.Linear(d, d)
        self.score = nn.Sequential(nn.Linear(3 * d, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, words):
        with torch.no_grad():
            v = torch.tanh(self.mix(self.table(words)))
        rest = (v.sum(1, keepdim=True) - v) / 4
        return self.score(torch.cat([v, rest, v * rest], -1)).squeeze(-1)


net = OddOneOut()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
words, odd = quizzes(1700)
for epoch in range(4):
    for i in torch.randperm(1500).split(50):
        loss = F.cross_entropy(net(words[i]), odd[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        print(epoch, round(loss.item(), 3), (net(words[1500:]).argmax(1) == odd[1500:]).float().mean().item())
