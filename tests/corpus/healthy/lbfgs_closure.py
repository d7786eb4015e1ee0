"""Full-batch L-BFGS with a closure: one step() calls the closure several times; no data loader, float64 throughout."""
import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(2)


def spectrum(n=160):
    """A sum of three Gaussian peaks with noise; fit amplitudes, centres and widths."""
    grid = torch.linspace(-1.7, 1.7, n)
    truth = torch.tensor([[1.0, -0.9, 0.25], [0.7, 0.1, 0.35], [1.3, 0.95, 0.2]])
    clean = (truth[:, 0] * torch.exp(-0.5 * ((grid[:, None] - truth[:, 1]) / truth[:, 2]) ** 2)).sum(1)
    return grid, clean + 0.03 * torch.randn(n), truth


class PeakFit(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.amplitude = torch.nn.Parameter(torch.tensor([0.8, 0.8, 0.8]))
        self.centre = torch.nn.Parameter(torch.tensor([-0.7, 0.0, 0.8]))
        self.log_width = torch.nn.Parameter(torch.tensor([-1.2, -1.2, -1.2]))

    def forward(self, x):
        z = (x[:, None] - self.centre) / self.log_width.exp()
        return (self.amplitude * torch.exp(-0.5 * z**2)).sum(dim=1)


x, y, truth = spectrum()
model = PeakFit()
optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=5, history_size=10, line_search_fn="strong_wolfe")
loss_fn = torch.nn.MSELoss()
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    return loss


for it in range(7):
    loss = optimizer.step(closure)
    print(f"outer step {it:2d} mse {loss.item():.6f} closure calls so far {calls}")

with torch.no_grad():
    fitted = torch.stack([model.amplitude, model.centre, model.log_width.exp()], dim=1)
print("fitted\n", fitted)
print("truth\n", truth)
