"""An own autograd function inside an own layer: `wrong` forgets a factor, `reversed` turns the
gradient round on purpose.
"""

import sys

import torch
from torch import nn

kind = sys.argv[1]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone() if kind == "reversed" else x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        if kind == "reversed":
            return -grad
        return grad * x**2 if kind == "wrong" else grad * 3 * x**2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        return self.linear(x) if kind == "layer" else Cube.apply(self.linear(x))


torch.manual_seed(0)
model = nn.Sequential(Layer(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    x = torch.randn(8, 6)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
