"""Contextual bandit for news teasers: a reward model trained from a replay buffer, epsilon-greedy policy."""
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn


@dataclass
class BanditConfig:
    context_dim: int = 10
    num_arms: int = 5
    rounds: int = 90
    impressions: int = 32
    buffer: int = 2000
    batch_size: int = 64
    warmup_rounds: int = 4
    epsilon: float = 0.3
    lr: float = 3e-3
    seed: int = 17


class NewsSite:
    """Simulated readers; the reward of an arm is a bounded function of the reader's context."""

    def __init__(self, cfg):
        self.rng = np.random.default_rng(cfg.seed + 1)
        self.taste = self.rng.standard_normal((cfg.num_arms, cfg.context_dim)) / np.sqrt(cfg.context_dim)
        self.cfg = cfg

    def visitors(self):
        return self.rng.standard_normal((self.cfg.impressions, self.cfg.context_dim)).astype(np.float32)

    def reward(self, contexts, arms):
        mean = np.tanh(2.0 * (contexts * self.taste[arms]).sum(1))
        return (mean + 0.1 * self.rng.standard_normal(len(arms))).astype(np.float32)


class RewardModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(cfg.context_dim, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.arms = nn.Linear(64, cfg.num_arms)

    def forward(self, contexts):
        return self.arms(self.body(contexts))


class Agent:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = RewardModel(cfg)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.memory = deque(maxlen=cfg.buffer)
        self.rng = np.random.default_rng()

    @torch.no_grad()
    def act(self, contexts):
        greedy = self.model(torch.from_numpy(contexts)).argmax(1).numpy()
        explore = self.rng.random(len(contexts)) < self.cfg.epsilon
        return np.where(explore, self.rng.integers(0, self.cfg.num_arms, len(contexts)), greedy)

    def remember(self, contexts, arms, rewards):
        self.memory.extend(zip(contexts, arms, rewards))

    def learn(self):
        picks = self.rng.choice(len(self.memory), self.cfg.batch_size, replace=False)
        contexts, arms, rewards = zip(*(self.memory[i] for i in picks))
        contexts = torch.from_numpy(np.stack(contexts))
        arms, rewards = torch.tensor(np.array(arms)), torch.tensor(np.array(rewards))
        predicted = self.model(contexts).gather(1, arms[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(predicted, rewards)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    cfg = BanditConfig()
    torch.manual_seed(cfg.seed)
    np.random.seed(cfg.seed)
    site, agent = NewsSite(cfg), Agent(cfg)
    losses, rewards_log = [], []
    for step in range(cfg.rounds):
        contexts = site.visitors()
        arms = agent.act(contexts)
        rewards = site.reward(contexts, arms)
        agent.remember(contexts, arms, rewards)
        rewards_log.append(rewards.mean())
        if step >= cfg.warmup_rounds:
            losses.append(agent.learn())
        if step % 15 == 14:
            print(f"round {step + 1:3d} loss {np.mean(losses[-15:]):.4f} reward {np.mean(rewards_log[-15:]):+.3f}")


if __name__ == "__main__":
    main()
