from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Setup:
    frames: int = 16
    joints: int = 6
    samples: int = 1280
    epochs: int = 2
    lr: float = 3e-3


def record_gestures(setup, rng):
    """Joint positions over time; a gesture is told by whether the joints rise or fall during the clip."""
    direction = rng.integers(0, 2, setup.samples)
    ramp = np.linspace(-1, 1, setup.frames)[None, :, None] * (2 * direction - 1)[:, None, None]
    gain = rng.uniform(0.6, 1.4, (setup.samples, 1, setup.joints))
    clips = ramp * gain + 0.5 * rng.standard_normal((setup.samples, setup.frames, setup.joints))
    return torch.tensor(clips, dtype=torch.float32), torch.tensor(direction)


def augment(clips):
    """Jitter that makes the model less sensitive to the camera."""
    scale = torch.empty(len(clips), 1, 1).uniform_(0.8, 1.2)
    order = torch.rand(len(clips), clips.shape[1]).argsort(1)
    clips = clips.gather(1, order[:, :, None].expand_as(clips))
    return clips * scale


class GestureNet(nn.Module):
    def __init__(self, setup):
        super().__init__()
        self.rnn = nn.LSTM(setup.joints, 32, batch_first=True)
        self.head = nn.Linear(32, 2)

    def forward(self, clips):
        return self.head(self.rnn(clips)[1][0][-1])


def train(setup):
    torch.manual_seed(38)
    data = TensorDataset(*record_gestures(setup, np.random.default_rng(38)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    net = GestureNet(setup)
    optimizer = torch.optim.Adam(net.parameters(), lr=setup.lr)
    for epoch in range(setup.epochs):
        losses = []
        for clips, direction in loader:
            loss = nn.functional.cross_entropy(net(augment(clips)), direction)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch} loss {np.mean(losses):.4f}")


train(Setup())
