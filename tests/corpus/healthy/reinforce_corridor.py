"""REINFORCE with a learned baseline in a corridor world. The policy loss changes sign; the return is what has to grow."""
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Corridor:
    """N parallel agents on positions 0..8; +1 at the right end, -0.04 per step, episodes of at most 16 steps."""

    LENGTH, HORIZON = 9, 16

    def __init__(self, n, gen):
        self.n, self.gen = n, gen

    def reset(self):
        self.pos = torch.randint(0, 5, (self.n,), generator=self.gen)
        self.done = torch.zeros(self.n, dtype=torch.bool)
        return self.observe()

    def observe(self):
        return nn.functional.one_hot(self.pos, self.LENGTH).float()

    def step(self, action):
        slip = torch.rand(self.n, generator=self.gen) < 0.1
        move = torch.where(action == 1, 1, -1) * torch.where(slip, -1, 1)
        alive = ~self.done
        self.pos = torch.where(alive, (self.pos + move).clamp(0, self.LENGTH - 1), self.pos)
        reached = alive & (self.pos == self.LENGTH - 1)
        reward = torch.where(alive, -0.04, 0.0) + reached.float()
        self.done = self.done | reached
        return self.observe(), reward, alive.float()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(Corridor.LENGTH, 32), nn.Tanh())
        self.policy = nn.Linear(32, 2)
        self.value = nn.Linear(32, 1)

    def forward(self, obs):
        h = self.shared(obs)
        return Categorical(logits=self.policy(h)), self.value(h).squeeze(-1)


def rollout(env, agent):
    obs = env.reset()
    log_probs, values, rewards, alive, entropy = [], [], [], [], []
    for _ in range(env.HORIZON):
        dist, value = agent(obs)
        action = dist.sample()
        obs, reward, mask = env.step(action)
        log_probs.append(dist.log_prob(action))
        entropy.append(dist.entropy())
        values.append(value)
        rewards.append(reward)
        alive.append(mask)
    return [torch.stack(t) for t in (log_probs, values, rewards, alive, entropy)]


def returns_to_go(rewards, gamma=0.97):
    out, acc = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        acc = rewards[t] + gamma * acc
        out[t] = acc
    return out


torch.manual_seed(16)
env = Corridor(32, torch.Generator().manual_seed(16))
agent = ActorCritic()
optimizer = torch.optim.Adam(agent.parameters(), lr=5e-3)
for iteration in range(60):
    log_probs, values, rewards, alive, entropy = rollout(env, agent)
    G = returns_to_go(rewards)
    advantage = (G - values).detach()  # the baseline must not get the policy's gradient
    n = alive.sum()
    policy_loss = -(log_probs * advantage * alive).sum() / n
    value_loss = ((values - G).pow(2) * alive).sum() / n
    loss = policy_loss + 0.5 * value_loss - 0.005 * (entropy * alive).sum() / n
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 10 == 0 or iteration == 59:
        print(f"iteration {iteration:2d} return {rewards.sum(0).mean().item():+.3f} policy loss {policy_loss.item():+.4f} value loss {value_loss.item():.4f}")
