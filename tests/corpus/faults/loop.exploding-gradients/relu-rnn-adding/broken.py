"""Add up a sequence of numbers, seen one at a time, with a ReLU RNN that starts as an identity map."""
import numpy as np
import torch
from torch import nn

np.random.seed(7)
torch.manual_seed(7)

STEPS = 24
HIDDEN = 48


def adding_batch(size):
    values = np.random.uniform(-1.7, 1.7, size=(size, STEPS, 2))
    target = (values[:, :, 0] - 0.5 * values[:, :, 1]).sum(axis=1) / STEPS**0.5
    return torch.tensor(values, dtype=torch.float32), torch.tensor(target, dtype=torch.float32)


class IdentityRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(2, HIDDEN, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(HIDDEN, 1)
        with torch.no_grad():
            nn.init.eye_(self.rnn.weight_hh_l0)
            nn.init.normal_(self.rnn.weight_ih_l0, std=0.1)
            nn.init.zeros_(self.rnn.bias_hh_l0)
            nn.init.zeros_(self.rnn.bias_ih_l0)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1]).squeeze(-1)


model = IdentityRNN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.009, momentum=0.9)
criterion = nn.MSELoss()
recent = []
for iteration in range(1, 121):
    model.train()
    x, y = adding_batch(32)
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    recent.append(loss.item())
    if iteration % 15 == 0:
        print(f"iteration {iteration} loss {sum(recent) / len(recent):.4g}")
        recent.clear()

model.eval()
with torch.no_grad():
    x, y = adding_batch(256)
    print(f"test mse {criterion(model(x), y).item():.4g}, variance of the target {y.var().item():.3f}")
