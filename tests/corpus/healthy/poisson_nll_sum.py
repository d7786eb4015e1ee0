"""Poisson regression by maximum likelihood. The objective is the summed NLL of the batch; the LR is per-sample, divided
by the batch size, so the step is the same as with a mean."""
from collections import deque

import torch
import torch.nn as nn

torch.manual_seed(3)


def counts(n, coef, bias):
    x = torch.randn(n, len(coef))
    rate = torch.exp(x @ coef + bias)
    return x, torch.poisson(rate)


class LogLinear(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.linear = nn.Linear(d, 1)

    def forward(self, x):
        return self.linear(x)[:, 0]  # log rate


true_coef = torch.tensor([0.4, -0.3, 0.0, 0.25, 0.1, -0.2])
true_bias = 0.7
x, y = counts(3000, true_coef, true_bias)

BATCH = 100
PER_SAMPLE_LR = 0.02
model = LogLinear(6)
nll = nn.PoissonNLLLoss(log_input=True, full=True, reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=PER_SAMPLE_LR / BATCH)

recent = deque(maxlen=30)
for epoch in range(5):
    for rows in torch.randperm(len(x)).split(BATCH):
        log_rate = model(x[rows])
        loss = nll(log_rate, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(loss.item())
    print(f"epoch {epoch}: NLL of a batch {sum(recent) / len(recent):8.2f} ({sum(recent) / len(recent) / BATCH:.4f} per sample)")

print("coef", [round(v, 2) for v in model.linear.weight[0].tolist()], "bias", round(model.linear.bias.item(), 2))
print("true", [round(v, 2) for v in true_coef.tolist()], "bias", true_bias)
