"""Self-distillation with a moving-average target network and two noisy views."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(109)
centres = torch.randn(6, 20)
label = torch.randint(0, 6, (1500,))
data = centres[label] + 0.5 * torch.randn(1500, 20)


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


online = nn.Sequential(mlp(20, 48, 24), mlp(24, 48, 16))
predictor = mlp(16, 32, 16)
target = copy.deepcopy(online)
for p in target.parameters():
    p.requires_grad = False

opt = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=2e-3)
for epoch in range(3):
    for i in torch.randperm(1500).split(60):
        a, b = (data[i] + 0.3 * torch.randn(len(i), 20) for _ in range(2))
        with torch.no_grad():
            ta, tb = target(a), target(b)
        pa, pb = predictor(online(a)), predictor(online(b))
        loss = 2 - F.cosine_similarity(pa, tb, dim=-1).mean() - F.cosine_similarity(pb, ta, dim=-1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), online.parameters()):
                slow.lerp_(fast, 0.03)
    online.eval()
    with torch.no_grad():
        z = F.normalize(online[0](data), dim=-1)
        near = (z @ z.T).fill_diagonal_(-2).argmax(1)
    online.train()
    print(f"epoch {epoch} loss {loss.item():.3f} neighbour purity {(label[near] == label).float().mean():.3f}")
