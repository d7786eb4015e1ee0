"""Advantage actor-critic on a small grid: one network, two heads, entropy bonus, loss of either sign."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(106)
SIDE, HORIZON, ENVS = 5, 12, 32
MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.actor, self.critic = nn.Linear(48, 4), nn.Linear(48, 1)

    def forward(self, obs):
        h = self.body(obs)
        return self.actor(h), self.critic(h).squeeze(-1)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=5e-3)
for update in range(60):
    place = torch.randint(0, SIDE, (ENVS, 2))
    goal = torch.randint(0, SIDE, (ENVS, 2))
    logps, values, rewards, entropies = [], [], [], []
    for _ in range(HORIZON):
        obs = torch.cat([place, goal], 1).float() / (SIDE - 1) * 2 - 1
        logits, value = agent(obs)
        dist = Categorical(logits=logits)
        action = dist.sample()
        before = (place - goal).abs().sum(1)
        place = (place + MOVES[action]).clamp(0, SIDE - 1)
        rewards.append((before - (place - goal).abs().sum(1)).float())
        logps.append(dist.log_prob(action))
        values.append(value)
        entropies.append(dist.entropy())
    ret, returns = torch.zeros(ENVS), []
    for r in reversed(rewards):
        ret = r + 0.9 * ret
        returns.append(ret)
    returns = torch.stack(returns[::-1])
    values = torch.stack(values)
    advantage = returns - values.detach()
    policy_loss = -(torch.stack(logps) * advantage).mean()
    loss = policy_loss + 0.5 * (values - returns).pow(2).mean() - 0.01 * torch.stack(entropies).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
    optimizer.step()
    if update % 12 == 11:
        print(f"update {update + 1} return {torch.stack(rewards).sum(0).mean():.3f} loss {loss.item():.3f}")
