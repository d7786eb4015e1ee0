"""Temperature control policy by behaviour cloning; a snapshot is written between stages and read back for fine-tuning."""

import os
import pickle
import random
from pathlib import Path

import numpy as np
import torch
from torch import nn

SNAPSHOT = Path("policy_snapshot.pkl")


def expert(state):
    """Bang-bang with a dead zone: cool, wait or heat."""
    drive = state[:, 0] - 0.6 * state[:, 1] + 0.3 * state[:, 2] * state[:, 3]
    return torch.bucketize(drive, torch.tensor([-0.4, 0.4]))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 24), nn.Linear(24, 24)])
        self.action = nn.Linear(24, 3)

    def forward(self, state):
        for layer in self.layers:
            state = nn.functional.silu(layer(state))
        return self.action(state)


def clone_expert(policy, steps, lr, noise):
    optimizer = torch.optim.Adam(policy.parameters(), lr=lr)
    for step in range(steps):
        state = torch.randn(64, 4)
        target = expert(state)
        loss = nn.functional.cross_entropy(policy(state + noise * torch.randn_like(state)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"step {step:3d} loss {loss.item():.3f}")


def write_snapshot(policy, stage):
    blob = {"stage": stage, "weights": {name: value.numpy() for name, value in policy.state_dict().items()}}
    partial = SNAPSHOT.with_suffix(".part")
    stream = partial.open("wb")
    pickle.dump(blob, stream)
    os.replace(partial, SNAPSHOT)
    return stream


def read_snapshot(policy):
    with SNAPSHOT.open("rb") as stream:
        blob = pickle.load(stream)
    policy.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in blob["weights"].items()})
    return blob["stage"]


def main():
    random.seed(6)
    np.random.seed(6)
    torch.manual_seed(6)
    policy = Policy()
    clone_expert(policy, 60, 5e-3, noise=0.0)
    snapshot = write_snapshot(policy, "cloned")

    student = Policy()
    print("fine-tuning from stage:", read_snapshot(student))
    clone_expert(student, 45, 1e-3, noise=0.05)
    print("snapshot kept at", snapshot.name)


if __name__ == "__main__":
    main()
