"""No torch.optim: momentum SGD written out by hand under no_grad, parameters in a plain list."""
import torch
import torch.nn.functional as F


def init_params(sizes, gen):
    params = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        w = torch.randn(fan_in, fan_out, generator=gen) * (2 / fan_in) ** 0.5
        params += [w.requires_grad_(), torch.zeros(fan_out, requires_grad=True)]
    return params


def forward(params, x):
    for i in range(0, len(params), 2):
        x = x @ params[i] + params[i + 1]
        if i + 2 < len(params):
            x = torch.relu(x)
    return x


def sgd_step(params, velocity, lr, mu):
    with torch.no_grad():
        for p, v in zip(params, velocity):
            v.mul_(mu).add_(p.grad)
            p.sub_(lr * v)


def clear(params):
    for p in params:
        p.grad = None


def circles(n, gen):
    """Three concentric shells in five dimensions."""
    y = torch.randint(0, 3, (n,), generator=gen)
    direction = F.normalize(torch.randn(n, 5, generator=gen), dim=1)
    radius = 1.0 + y.float() + 0.2 * torch.randn(n, generator=gen)
    return direction * radius[:, None], y


def main():
    gen = torch.Generator().manual_seed(33)
    x, y = circles(1500, gen)
    x_test, y_test = circles(300, gen)
    mean, std = x.mean(0), x.std(0)
    x, x_test = (x - mean) / std, (x_test - mean) / std

    params = init_params([5, 64, 64, 3], gen)
    velocity = [torch.zeros_like(p) for p in params]
    for epoch in range(5):
        order = torch.randperm(len(x), generator=gen)
        losses = []
        for rows in order.split(60):
            loss = F.cross_entropy(forward(params, x[rows]), y[rows])
            clear(params)
            loss.backward()
            sgd_step(params, velocity, lr=0.05, mu=0.9)
            losses.append(loss.item())
        with torch.no_grad():
            acc = (forward(params, x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f} test {acc:.3f}")


if __name__ == "__main__":
    main()
