"""A hand-written autograd.Function (a smooth hinge with its own backward), verified by gradcheck before training."""
import torch
from torch import nn
from torch.autograd import Function, gradcheck
from torch.utils.data import DataLoader, TensorDataset


class SquaredHinge(Function):
    """mean(max(0, 1 - margin)^2)"""

    @staticmethod
    def forward(ctx, margin):
        slack = (1 - margin).clamp(min=0)
        ctx.save_for_backward(slack)
        return slack.pow(2).mean()

    @staticmethod
    def backward(ctx, grad_output):
        (slack,) = ctx.saved_tensors
        return grad_output * (-2.0 / slack.numel()) * slack


class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))


class MarginClassifier(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = nn.Linear(d, 32)
        self.b = nn.Linear(32, 32)
        self.c = nn.Linear(32, 1)

    def forward(self, x):
        h = Swish.apply(self.a(x))
        h = Swish.apply(self.b(h))
        return self.c(h).squeeze(1)


def main():
    torch.manual_seed(58)
    probe = torch.randn(7, dtype=torch.float64, requires_grad=True)
    assert gradcheck(SquaredHinge.apply, (probe,)) and gradcheck(Swish.apply, (probe,))

    x = torch.randn(1600, 10)
    sign = torch.sign(x[:, 0] * x[:, 1] + 0.8 * x[:, 2] - 0.3 * torch.randn(1600))
    train = DataLoader(TensorDataset(x[:1280], sign[:1280]), batch_size=64, shuffle=True)
    model = MarginClassifier(10)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        model.train()
        total = 0.0
        for xb, sb in train:
            loss = SquaredHinge.apply(model(xb) * sb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
        model.eval()
        with torch.no_grad():
            correct = (torch.sign(model(x[1280:])) == sign[1280:]).float().mean().item()
        print(f"epoch {epoch} squared hinge {total / 1280:.3f} val accuracy {correct:.3f}")


main()
