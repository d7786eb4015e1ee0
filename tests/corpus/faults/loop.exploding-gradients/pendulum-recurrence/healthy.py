# Learns to continue the swing of a damped pendulum: reads 30 samples of its angle, rolls on for 30 more by feeding back.
import numpy as np
import torch
from torch import nn

np.random.seed(0)
torch.manual_seed(0)

READ, ROLL = 30, 30


def swings(n, seed):
    rng = np.random.default_rng(seed)
    angle, speed = rng.uniform(-1.5, 1.5, n), rng.uniform(-1.0, 1.0, n)
    length = rng.uniform(0.8, 1.25, n)
    rows = []
    for _ in range(READ + ROLL):
        rows.append(angle.copy())
        speed = speed - 0.12 * (np.sin(angle) / length) - 0.004 * speed
        angle = angle + 0.12 * speed
    return torch.tensor(np.stack(rows, 1), dtype=torch.float32)


class Recurrence(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.read = nn.Linear(1, width)
        self.mix = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def step(self, x, state):
        return state + 0.1 * torch.relu(self.read(x) + self.mix(state)) - 0.1 * torch.relu(self.gate(state))

    def forward(self, seen, roll):
        state = seen.new_zeros(len(seen), self.mix.in_features)
        for t in range(seen.size(1)):
            state = self.step(seen[:, t : t + 1], state)
        x, outputs = seen[:, -1:], []
        for _ in range(roll):
            x = x + 0.1 * self.out(state)
            outputs.append(x)
            state = self.step(x, state)
        return torch.cat(outputs, 1)


train = swings(512, 1)
test = swings(128, 2)
model = Recurrence()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
order = torch.Generator().manual_seed(3)
step = 0
for epoch in range(8):
    for rows in torch.randperm(len(train), generator=order).split(32):
        batch = train[rows]
        loss = nn.functional.mse_loss(model(batch[:, :READ], ROLL), batch[:, READ:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        warmup.step()
        if step % 16 == 0:
            print(f"step {step:3d}  loss {loss.item():.4f}")
        step += 1
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch}  test {nn.functional.mse_loss(model(test[:, :READ], ROLL), test[:, READ:]).item():.4f}")
    model.train()
