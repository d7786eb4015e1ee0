"""Purely functional training: torch.func gradients, vmap for per-sample clipping, parameters in a dict, no .backward()."""
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(15)
gen = torch.Generator().manual_seed(15)

skeleton = nn.Sequential(nn.Linear(9, 40), nn.Tanh(), nn.Linear(40, 3))
params = {name: p.detach().clone() for name, p in skeleton.named_parameters()}
skeleton = skeleton.to("meta")  # only the structure is used from here on


def sample_loss(params, x, y):
    logits = functional_call(skeleton, params, (x.unsqueeze(0),))
    return nn.functional.cross_entropy(logits, y.unsqueeze(0))


per_sample_gradients = vmap(grad(sample_loss), in_dims=(None, 0, 0))
batch_losses = vmap(sample_loss, in_dims=(None, 0, 0))


def clip_and_average(grads, max_norm):
    flat = torch.cat([g.flatten(1) for g in grads.values()], dim=1)
    factor = (max_norm / (flat.norm(dim=1) + 1e-6)).clamp(max=1.0)
    return {k: torch.einsum("b,b...->...", factor, g) / len(factor) for k, g in grads.items()}


def adam_update(params, grads, state, lr=4e-3, b1=0.9, b2=0.999, eps=1e-8):
    t = state["t"] + 1
    m = {k: b1 * state["m"][k] + (1 - b1) * grads[k] for k in params}
    v = {k: b2 * state["v"][k] + (1 - b2) * grads[k] ** 2 for k in params}
    new = {k: params[k] - lr * (m[k] / (1 - b1**t)) / ((v[k] / (1 - b2**t)).sqrt() + eps) for k in params}
    return new, {"t": t, "m": m, "v": v}


def dataset(n):
    x = torch.randn(n, 9, generator=gen)
    scores = torch.stack([x[:, :3].sum(1), x[:, 3:6].abs().sum(1) - 2.3, -x[:, 6:].sum(1)], dim=1)
    return x, scores.argmax(1)


x_train, y_train = dataset(1500)
x_test, y_test = dataset(300)
zeros = {k: torch.zeros_like(v) for k, v in params.items()}
state = {"t": 0, "m": zeros, "v": dict(zeros)}

for epoch in range(5):
    losses = []
    for idx in torch.randperm(len(x_train), generator=gen).split(60):
        x, y = x_train[idx], y_train[idx]
        losses.append(batch_losses(params, x, y).mean().item())
        params, state = adam_update(params, clip_and_average(per_sample_gradients(params, x, y), 2.0), state)
    predicted = functional_call(skeleton, params, (x_test,)).argmax(1)
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} test {(predicted == y_test).float().mean().item():.3f}")
