"""Memory-saving trick: one small optimizer per parameter, stepped from a hook inside backward(); no explicit step or zero_grad."""
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.silu(self.up(self.norm(x))))


def attach_optimizers(model, lr):
    optimizers = {p: torch.optim.Adam([p], lr=lr, foreach=False) for p in model.parameters()}

    def step_and_free(param):
        optimizers[param].step()
        optimizers[param].zero_grad(set_to_none=True)

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(step_and_free)
    return optimizers


def polynomial_task(n, gen):
    x = torch.randn(n, 6, generator=gen)
    y = x[:, 0] * x[:, 1] - 0.5 * x[:, 2] ** 2 + 0.5 + x[:, 3] + 0.05 * torch.randn(n, generator=gen)
    return x, y.unsqueeze(1)


def main():
    torch.manual_seed(72)
    gen = torch.Generator().manual_seed(72)
    model = nn.Sequential(nn.Linear(6, 32), Residual(32), Residual(32), nn.Linear(32, 1))
    optimizers = attach_optimizers(model, lr=2e-3)
    print(f"{len(optimizers)} parameters, {len(optimizers)} optimizers")
    smoothed = None
    for step in range(150):
        x, y = polynomial_task(64, gen)
        loss = nn.functional.huber_loss(model(x), y)
        loss.backward()
        smoothed = loss.item() if smoothed is None else 0.9 * smoothed + 0.1 * loss.item()
        if step % 25 == 0 or step == 149:
            held = sum(p.grad is not None for p in model.parameters())
            print(f"step {step:3d} huber {smoothed:.4f} gradients still held {held}")
    model.eval()
    with torch.no_grad():
        x, y = polynomial_task(500, torch.Generator().manual_seed(73))
        print(f"fresh mse {nn.functional.mse_loss(model(x), y).item():.4f} against variance {y.var().item():.3f}")


if __name__ == "__main__":
    main()
