"""Q-learning on a ring road. The second network is a copy that is loaded anew now and then; its values are not detached, so it
collects gradients that no optimizer ever uses."""
import random

import torch
from torch import nn
from torch.nn import functional as F

CELLS, GAMMA, REFRESH = 12, 0.9, 160


class Values(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(2, 48), nn.Linear(48, 48), nn.Linear(48, 2)

    def forward(self, place):
        return self.out(torch.relu(self.second(torch.relu(self.first(place)))))


def seen(cell):
    angle = torch.tensor(2 * torch.pi * cell / CELLS)
    return torch.stack([angle.cos(), angle.sin()])


def drive(cell, action):
    after = (cell + (1 if action else -1)) % CELLS
    return after, 1.0 if after == 0 else -0.05, after == 0


def collect(rng, trips=120):
    memory = []
    for _ in range(trips):
        cell = rng.randrange(1, CELLS)
        for _ in range(20):
            action = rng.randrange(2)
            after, reward, over = drive(cell, action)
            memory.append((seen(cell), action, reward, seen(after), 0.0 if over else 1.0))
            cell = after
            if over:
                break
    return memory


def main():
    torch.manual_seed(3)
    rng = random.Random(3)
    memory = collect(rng)
    model, slow = Values(), Values()
    slow.load_state_dict(model.state_dict())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(320):
        place, action, reward, after, going = zip(*rng.sample(memory, 32))
        action, reward, going = torch.tensor(action)[:, None], torch.tensor(reward)[:, None], torch.tensor(going)[:, None]
        chosen = model(torch.stack(place)).gather(1, action)
        wanted = reward + GAMMA * slow(torch.stack(after)).max(1)[0][:, None] * going
        loss = F.smooth_l1_loss(chosen, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % REFRESH == 0:
            slow.load_state_dict(model.state_dict())
            print(f"step {step + 1}: loss {loss.item():.4f}")


main()
