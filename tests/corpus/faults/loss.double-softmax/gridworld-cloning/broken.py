"""Behaviour cloning of a scripted grid-world expert."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 9
ACTIONS = [(-1, 0), (1, 0), (0, -1), (0, 1), (0, 0)]


class Corral:
    """The agent walks to the goal; one wall cell makes the expert take a detour."""

    def reset(self):
        cells = random.sample(range(SIZE * SIZE), 3)
        self.agent, self.goal, self.wall = (divmod(c, SIZE) for c in cells)
        return self.observe()

    def observe(self):
        scale = (SIZE - 1) / 2
        (ar, ac), (gr, gc), (wr, wc) = self.agent, self.goal, self.wall
        return np.array(
            [(ar - gr) / scale, (ac - gc) / scale, (ar - wr) / scale, (ac - wc) / scale, ar / scale - 1, ac / scale - 1],
            dtype=np.float32,
        )

    def expert(self):
        (ar, ac), (gr, gc) = self.agent, self.goal
        if (ar, ac) == (gr, gc):
            return 4
        prefs = []
        if abs(ar - gr) >= abs(ac - gc):
            prefs = [0 if ar > gr else 1, 2 if ac > gc else 3]
        else:
            prefs = [2 if ac > gc else 3, 0 if ar > gr else 1]
        for a in prefs:
            if self.peek(a) != self.wall:
                return a
        return prefs[0]

    def peek(self, a):
        dr, dc = ACTIONS[a]
        return (min(max(self.agent[0] + dr, 0), SIZE - 1), min(max(self.agent[1] + dc, 0), SIZE - 1))

    def step(self, a):
        target = self.peek(a)
        if target != self.wall:
            self.agent = target
        return self.observe(), self.agent == self.goal


class PolicyNet(nn.Module):
    def __init__(self, obs_dim=6, hidden=96, n_actions=len(ACTIONS)):
        super().__init__()
        self.fc1 = nn.Linear(obs_dim, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.action_head = nn.Linear(hidden, n_actions)

    def forward(self, obs):
        x = F.relu(self.fc1(obs))
        x = F.relu(self.fc2(x))
        return F.softmax(self.action_head(x), dim=-1)


def collect(env, episodes):
    buffer = deque(maxlen=20000)
    for _ in range(episodes):
        obs = env.reset()
        for _ in range(8):
            a = env.expert()
            buffer.append((obs, a))
            # a little noise so that the states are diverse
            obs, _ = env.step(a if random.random() > 0.25 else random.randrange(4))
    return buffer


def rollout_success(env, policy, episodes=40):
    policy.eval()
    wins = 0
    with torch.no_grad():
        for _ in range(episodes):
            obs = env.reset()
            for _ in range(25):
                action = policy(torch.from_numpy(obs).unsqueeze(0)).argmax(dim=-1).item()
                obs, done = env.step(action)
                if done:
                    wins += 1
                    break
    policy.train()
    return wins / episodes


def main():
    seed = 17
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    env = Corral()
    buffer = collect(env, 350)
    policy = PolicyNet()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for update in range(1, 181):
        batch = random.sample(buffer, 64)
        obs = torch.from_numpy(np.stack([o for o, _ in batch]))
        actions = torch.tensor([a for _, a in batch])
        loss = F.cross_entropy(policy(obs), actions)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 60 == 0:
            print(f"update {update}  bc loss {loss.item():.4f}  success {rollout_success(env, policy):.2f}")


if __name__ == "__main__":
    main()
