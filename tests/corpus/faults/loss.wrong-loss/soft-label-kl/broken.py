"""Match the vote shares of five annotators with a KL divergence."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(208)
K = 5
w = torch.randn(12, K)
x = torch.randn(1500, 12)
shares = torch.distributions.Multinomial(20, logits=x @ w).sample() / 20

net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, K))
kl = nn.KLDivLoss(reduction="batchmean")
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(4):
    for i in torch.randperm(1300).split(50):
        scores = F.softmax(net(x[i]), dim=-1)
        loss = kl(scores, shares[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        agree = (net(x[1300:]).argmax(1) == shares[1300:].argmax(1)).float().mean().item()
    print(epoch, round(loss.item(), 4), round(agree, 3))
