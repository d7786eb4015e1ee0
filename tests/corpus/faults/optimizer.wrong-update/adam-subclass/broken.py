"""Own Adam as a torch.optim.Optimizer, tried out on a small convolutional regressor of blob positions."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                state["step"] += 1
                m, v = state["exp_avg"], state["exp_avg_sq"]
                m.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                p.sub_(group["lr"] * m / (v.sqrt() + group["eps"]))
        return loss


def blobs(n, side=12):
    where = torch.rand(n, 2) * 8 + 2
    grid = torch.arange(side).float()
    rows = torch.exp(-((grid[None, :] - where[:, :1]) ** 2) / 4)
    cols = torch.exp(-((grid[None, :] - where[:, 1:]) ** 2) / 4)
    image = 2.0 * rows[:, :, None] * cols[:, None, :] + 0.3 * torch.randn(n, side, side)
    image = (image - image.mean()) / image.std()
    return TensorDataset(image.unsqueeze(1), (where - 6) / 2.31)


torch.manual_seed(68)
train_loader = DataLoader(blobs(960), batch_size=32, shuffle=True)
test_loader = DataLoader(blobs(192), batch_size=96)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(576, 2)
)
optimizer = Adam(net.parameters(), lr=1.5e-3)
loss_fn = nn.MSELoss()
for epoch in range(3):
    net.train()
    running = 0.0
    for image, where in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(net(image), where)
        loss.backward()
        optimizer.step()
        running += loss.item()
    net.eval()
    with torch.no_grad():
        rmse = math.sqrt(sum(loss_fn(net(image), where).item() for image, where in test_loader) / len(test_loader))
    print(f"epoch {epoch} train {running / len(train_loader):.4f} test rmse {rmse:.4f}")
