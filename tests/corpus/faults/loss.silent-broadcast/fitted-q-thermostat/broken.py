"""Offline Q-learning for a thermostat from logged transitions, with a slowly following target network."""

import copy
import random

import numpy as np
import torch
from torch import nn

SEED = 2
GAMMA, TAU = 0.8, 0.05
rng = np.random.default_rng(SEED)


def logged_transitions(n=4000):
    """Rooms drift towards the outside temperature; heating costs, being off the set point costs more."""
    state = np.stack([rng.normal(0, 1.5, n), rng.normal(-1, 1, n), rng.normal(size=n)], axis=1)
    action = rng.integers(0, 3, n)
    following = state.copy()
    following[:, 0] += 0.2 * (state[:, 1] - state[:, 0]) + 0.8 * (action - 1) + 0.05 * rng.normal(size=n)
    following[:, 2] = rng.normal(size=n)
    reward = 1 - np.abs(following[:, 0]) - 0.1 * (action == 2)
    done = rng.random(n) < 0.05
    as_float = lambda a: torch.tensor(a, dtype=torch.float32)  # noqa: E731
    return as_float(state), torch.tensor(action), as_float(reward), as_float(following), as_float(done)


class QNetwork(nn.Module):
    def __init__(self, observations=3, actions=3, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(observations, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, actions)
        )

    def forward(self, state):
        return self.layers(state)


class Learner:
    def __init__(self):
        self.online = QNetwork()
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=2e-3)

    def update(self, state, action, reward, following, done):
        q = self.online(state).gather(1, action.unsqueeze(1))
        with torch.no_grad():
            best = self.target(following).max(dim=1).values
            backup = reward + GAMMA * (1 - done) * best
        loss = (q - backup).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.online.parameters()):
                slow.lerp_(fast, TAU)
        return loss.item()

    @torch.no_grad()
    def average_reward(self, rooms=64, hours=20):
        gen = np.random.default_rng(5)
        inside, outside = gen.normal(0, 1.5, rooms), gen.normal(-1, 1, rooms)
        total = 0.0
        for _ in range(hours):
            observation = torch.tensor(np.stack([inside, outside, gen.normal(size=rooms)], 1), dtype=torch.float32)
            act = self.online(observation).argmax(1).numpy()
            inside = inside + 0.2 * (outside - inside) + 0.8 * (act - 1)
            total += (1 - np.abs(inside) - 0.1 * (act == 2)).mean()
        return total / hours


def main():
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)
    memory = logged_transitions()
    learner = Learner()
    for step in range(120):
        rows = torch.randint(0, len(memory[0]), (128,))
        loss = learner.update(*(column[rows] for column in memory))
        if step % 20 == 0 or step == 119:
            print(f"step {step:3d}  td {loss:.4f}  reward per hour {learner.average_reward():.3f}")


if __name__ == "__main__":
    main()
