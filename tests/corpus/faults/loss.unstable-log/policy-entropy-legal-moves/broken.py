"""Policy gradient on a card-picking bandit where some moves are not legal."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(29)
CARDS, FEATS = 6, 8
value = torch.randn(FEATS, CARDS)


def deal(n):
    hand = torch.randn(n, FEATS)
    legal = torch.rand(n, CARDS) < 0.7
    legal[:, 0] = True
    worth = hand @ value
    return hand, legal, worth / worth.std()


policy = nn.Sequential(nn.Linear(FEATS, 48), nn.Tanh(), nn.Linear(48, CARDS))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
recent = []
for step in range(100):
    hand, legal, worth = deal(64)
    scores = policy(hand).masked_fill(~legal, float("-inf"))
    probs = F.softmax(scores, dim=-1)
    action = torch.multinomial(probs.detach(), 1)
    reward = worth.gather(1, action)
    advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
    picked = torch.log(probs.gather(1, action))
    entropy = -(probs * torch.log(probs)).sum(-1).mean()
    loss = -(advantage * picked).mean() - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(reward.mean().item())
    if step % 20 == 19:
        print(f"step {step + 1} reward {sum(recent[-20:]) / 20:.3f} entropy {entropy.item():.3f}")
