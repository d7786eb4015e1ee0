"""Plain SGD, one parameter group, no weight decay anywhere: LayerNorm and biases in the same group are fine here."""
import torch as th
from torch import nn


def friedman(n, generator):
    """The Friedman #1 regression surface, standardised target, inputs of zero mean and unit variance."""
    u = th.rand(n, 10, generator=generator)
    y = 10 * th.sin(th.pi * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - 0.5) ** 2 + 10 * u[:, 3] + 5 * u[:, 4]
    y = y + th.randn(n, generator=generator)
    return (u - 0.5) * 12**0.5, y


class NormedMLP(nn.Module):
    def __init__(self, width=64, depth=2):
        super().__init__()
        self.embed = nn.Linear(10, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.embed(x)
        for norm, linear in zip(self.norms, self.hidden):
            h = h + th.relu(linear(norm(h)))
        return self.out(h).squeeze(-1)


th.manual_seed(9)
generator = th.Generator().manual_seed(9)
xs, ys = friedman(2000, generator)
xv, yv = friedman(400, generator)
y_mean, y_std = ys.mean(), ys.std()
ys, yv = (ys - y_mean) / y_std, (yv - y_mean) / y_std

model = NormedMLP()
optimiser = th.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
mse = nn.MSELoss()

for epoch in range(1, 6):
    model.train()
    order = th.randperm(len(xs))
    epoch_sse = 0.0
    for start in range(0, len(order), 80):
        pick = order[start : start + 80]
        prediction = model(xs[pick])
        loss = mse(prediction, ys[pick])
        model.zero_grad()
        loss.backward()
        optimiser.step()
        epoch_sse += loss.item() * len(pick)
    model.eval()
    with th.no_grad():
        residual = yv - model(xv)
        r2 = 1 - residual.pow(2).sum() / (yv - yv.mean()).pow(2).sum()
    print(f"epoch {epoch} train mse {epoch_sse / len(xs):.4f} val R2 {r2.item():.3f}")
