"""DQN on a small grid: online network, target network that is never trained but copied, replay buffer, epsilon-greedy."""
import copy
import random
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

SIZE, GAMMA = 5, 0.9
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]
GOAL = (4, 4)


def encode(cell):
    v = torch.zeros(2 * SIZE)
    v[cell[0]] = 1.0
    v[SIZE + cell[1]] = 1.0
    return v


def env_step(cell, action):
    r, c = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
    nxt = (min(max(r, 0), SIZE - 1), min(max(c, 0), SIZE - 1))
    return nxt, (1.0 if nxt == GOAL else -0.02), nxt == GOAL


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2 * SIZE, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, s):
        return self.layers(s)


def learn(online, target, optimizer, memory, rng, batch=48):
    s, a, r, s2, done = (torch.stack(z) for z in zip(*rng.sample(memory, batch)))
    q = online(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        bootstrap = r + GAMMA * (1 - done) * target(s2).max(1).values
    loss = F.smooth_l1_loss(q, bootstrap)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(online.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def greedy_length(online, start=(0, 0), limit=20):
    cell = start
    with torch.no_grad():
        for n in range(limit):
            cell, _, done = env_step(cell, int(online(encode(cell)).argmax()))
            if done:
                return n + 1
    return limit


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    online = QNet()
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
    memory = deque(maxlen=2000)
    cell, losses, updates = (0, 0), [], 0
    for t in range(1300):
        epsilon = max(0.2, 1 - t / 700)
        if rng.random() < epsilon:
            action = rng.randrange(4)
        else:
            with torch.no_grad():
                action = int(online(encode(cell)).argmax())
        nxt, reward, done = env_step(cell, action)
        memory.append((encode(cell), torch.tensor(action), torch.tensor(reward), encode(nxt), torch.tensor(float(done))))
        cell = (rng.randrange(4), rng.randrange(4)) if done else nxt
        if t >= 100 and t % 4 == 0:
            losses.append(learn(online, target, optimizer, memory, rng))
            updates += 1
            if updates % 25 == 0:
                target.load_state_dict(online.state_dict())
        if t % 200 == 199:
            print(f"t {t + 1} td loss {sum(losses[-25:]) / 25:.4f} greedy path {greedy_length(online)} (best 8)")


if __name__ == "__main__":
    main()
