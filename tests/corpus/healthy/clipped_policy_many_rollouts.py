"""Actor and critic with a clipped policy loss. Between two updates lie hundreds of forward passes without gradients, and every
random stream (torch, numpy, the world's own generator) is seeded."""
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

WORLDS, HORIZON, ROUNDS, PASSES, PARTS = 6, 96, 8, 3, 3
GAMMA, LAMBDA, CLIP = 0.97, 0.95, 0.2


class Carts:
    """A cart on a line is to be kept near the middle; it drifts, and is pushed left or right."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = self.begin(WORLDS)

    def begin(self, n):
        return np.stack([self.rng.uniform(-1, 1, n), self.rng.normal(0, 0.1, n)], 1)

    def move(self, action):
        push = np.where(action == 1, 0.1, -0.1)
        self.state[:, 1] = 0.95 * self.state[:, 1] + push + self.rng.normal(0, 0.02, WORLDS)
        self.state[:, 0] += 0.2 * self.state[:, 1]
        reward, over = 1.0 - np.abs(self.state[:, 0]), np.abs(self.state[:, 0]) > 1.5
        self.state[over] = self.begin(int(over.sum()))
        return reward, over


def network(out, gain):
    layers = [nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, out)]
    for layer in layers[::2]:
        nn.init.orthogonal_(layer.weight, 2**0.5)
        nn.init.zeros_(layer.bias)
    nn.init.orthogonal_(layers[-1].weight, gain)
    return nn.Sequential(*layers)


def rollout(carts, actor, critic):
    seen, taken, logps, values, rewards, overs = [], [], [], [], [], []
    for _ in range(HORIZON):
        x = torch.tensor(carts.state, dtype=torch.float32)
        with torch.no_grad():
            policy = Categorical(logits=actor(x))
            action = policy.sample()
            values.append(critic(x).squeeze(1))
            logps.append(policy.log_prob(action))
        reward, over = carts.move(action.numpy())
        seen.append(x)
        taken.append(action)
        rewards.append(torch.tensor(reward, dtype=torch.float32))
        overs.append(torch.tensor(over, dtype=torch.float32))
    with torch.no_grad():
        after = critic(torch.tensor(carts.state, dtype=torch.float32)).squeeze(1)
    gains, running = [], torch.zeros(WORLDS)
    for t in reversed(range(HORIZON)):
        delta = rewards[t] + GAMMA * after * (1 - overs[t]) - values[t]
        running = delta + GAMMA * LAMBDA * (1 - overs[t]) * running
        gains.append(running)
        after = values[t]
    gains = torch.stack(gains[::-1])
    flat = [torch.cat(x) for x in (seen, taken, logps)]
    return (*flat, gains.flatten(), (gains + torch.stack(values)).flatten(), torch.stack(rewards).mean())


def main():
    torch.manual_seed(11)
    np.random.seed(11)
    carts, actor, critic = Carts(11), network(2, 0.01), network(1, 1.0)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=2e-3, eps=1e-5)
    rows = np.arange(WORLDS * HORIZON)
    for turn in range(ROUNDS):
        x, action, logp, gain, goal, reward = rollout(carts, actor, critic)
        for _ in range(PASSES):
            np.random.shuffle(rows)
            for part in np.array_split(rows, PARTS):
                policy = Categorical(logits=actor(x[part]))
                ratio = (policy.log_prob(action[part]) - logp[part]).exp()
                g = (gain[part] - gain[part].mean()) / (gain[part].std() + 1e-8)
                chosen = torch.max(-g * ratio, -g * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
                value = 0.5 * ((critic(x[part]).squeeze(1) - goal[part]) ** 2).mean()
                loss = chosen + 0.5 * value - 0.01 * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
                optimizer.step()
        print(f"round {turn}: reward {reward:.3f}, value loss {value.item():.3f}")


main()
