"""Advantage actor-critic for a one-battery dispatch problem, vectorised over 48 parallel episodes."""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class BatteryPark:
    """Buy low, sell high: state is (price, price trend, charge); actions are charge, hold, discharge."""

    def __init__(self, n, seed):
        self.n = n
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.phase = self.rng.uniform(0, 2 * np.pi, self.n)
        self.charge = self.rng.uniform(0.2, 0.8, self.n)
        return self.obs()

    def price(self):
        return np.sin(self.phase)

    def obs(self):
        state = np.stack([self.price(), np.cos(self.phase), 2 * self.charge - 1], axis=1)
        return torch.as_tensor(state, dtype=torch.float32)

    def step(self, action):
        delta = (1 - action.numpy()) * 0.2
        new = np.clip(self.charge + delta, 0.0, 1.0)
        moved = new - self.charge
        reward = -5.0 * moved * self.price()
        self.charge = new
        self.phase = self.phase + 0.5
        return self.obs(), torch.as_tensor(reward, dtype=torch.float32)


class ActorCritic(nn.Module):
    def __init__(self, obs_dim=3, n_actions=3, hidden=48):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, n_actions))
        self.critic = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, obs):
        return Categorical(logits=self.actor(obs)), self.critic(obs).squeeze(-1)


def discounted(rewards, gamma):
    out, running = [], torch.zeros_like(rewards[0])
    for r in reversed(rewards):
        running = r + gamma * running
        out.append(running)
    return torch.stack(out[::-1])


def main(updates=120, horizon=6, gamma=0.8):
    torch.manual_seed(12)
    np.random.seed(12)
    env = BatteryPark(48, seed=12)
    net = ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    history = []

    for update in range(updates):
        obs = env.reset()
        states, actions, rewards = [], [], []
        for _ in range(horizon):
            with torch.no_grad():
                dist, _ = net(obs)
                action = dist.sample()
            states.append(obs)
            actions.append(action)
            obs, reward = env.step(action)
            rewards.append(reward)

        returns = discounted(rewards, gamma).flatten()
        dist, value = net(torch.cat(states))
        advantage = returns - value
        actor_loss = -(dist.log_prob(torch.cat(actions)) * advantage.detach()).mean()
        critic_loss = advantage.pow(2).mean()
        loss = actor_loss + 0.5 * critic_loss - 0.01 * dist.entropy().mean()

        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

        history.append(torch.stack(rewards).sum(0).mean().item())
        if (update + 1) % 20 == 0:
            print(f"update {update + 1:3d} return {np.mean(history[-20:]):+.3f} critic {critic_loss.item():.4f}")


if __name__ == "__main__":
    main()
