"""Behaviour cloning of a lane-keeping controller from logged drives."""

import math
import random
from collections import deque

import numpy as np
import torch
from torch import nn


class Simulator:
    """Car on a curving road; the expert is a clipped PD controller."""

    def __init__(self, rng):
        self.rng = rng

    def drive(self, steps):
        offset, heading, speed = self.rng.normal(0, 1), 0.0, self.rng.uniform(0.8, 1.2)
        phase = self.rng.uniform(0, 2 * math.pi)
        log = []
        for t in range(steps):
            bend = math.sin(0.2 * t + phase)
            steer = float(np.clip(-0.9 * offset - 1.4 * heading + 0.5 * bend, -1.5, 1.5))
            log.append(((offset, heading, speed, bend), steer))
            heading += 0.3 * (steer - 0.5 * bend) + 0.15 * self.rng.normal()
            offset += 0.3 * speed * heading
        return log


class ReplayBuffer:
    def __init__(self, capacity):
        self.data = deque(maxlen=capacity)
        self.mean = self.std = None

    def extend(self, log):
        self.data.extend(log)

    def freeze_statistics(self):
        obs = np.array([o for o, _ in self.data])
        self.mean, self.std = obs.mean(0), obs.std(0)

    def sample(self, n):
        obs, act = zip(*random.sample(self.data, n), strict=False)
        obs = (np.array(obs) - self.mean) / self.std
        return torch.tensor(obs, dtype=torch.float32), torch.tensor(act, dtype=torch.float32)


class Policy(nn.Module):
    def __init__(self, obs_dim=4, hidden=64):
        super().__init__()
        self.l1 = nn.Linear(obs_dim, hidden)
        self.l2 = nn.Linear(hidden, hidden)
        self.mu = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = torch.tanh(self.l2(torch.tanh(self.l1(obs))))
        return self.mu(h).squeeze(-1)


class Agent:
    def __init__(self, lr=0.05, max_grad_norm=0.5):
        self.policy = Policy()
        self.optim = torch.optim.SGD(self.policy.parameters(), lr=lr, momentum=0.9)
        self.max_grad_norm = max_grad_norm

    def update(self, obs, act):
        loss = (self.policy(obs) - act).pow(2).mean()
        self.optim.zero_grad()
        nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
        loss.backward()
        self.optim.step()
        return loss.item()


def main(iterations=150, batch=64):
    random.seed(9)
    np.random.seed(9)
    torch.manual_seed(9)
    sim = Simulator(np.random.default_rng(9))
    buffer = ReplayBuffer(10_000)
    for _ in range(40):
        buffer.extend(sim.drive(60))
    buffer.freeze_statistics()

    agent = Agent()
    window = deque(maxlen=25)
    for it in range(1, iterations + 1):
        window.append(agent.update(*buffer.sample(batch)))
        if it % 25 == 0:
            print(f"iter {it:4d} imitation loss {sum(window) / len(window):.4f}")


if __name__ == "__main__":
    main()
