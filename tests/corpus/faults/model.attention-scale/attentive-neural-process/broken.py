# %% [markdown]
# Attentive neural process on 1-D curves: context points are read by cross-attention at each query location.

# %%
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal

torch.manual_seed(1234)
g = torch.Generator().manual_seed(1234)


# %%
def sample_curves(batch, num_context, num_target):
    """Sums of a few random sinusoids on [-2, 2]."""
    n = num_context + num_target
    x = torch.rand(batch, n, 1, generator=g) * 4 - 2
    freq = 0.8 + 1.2 * torch.rand(batch, 1, 1, generator=g)
    shift = 6.28 * torch.rand(batch, 1, 1, generator=g)
    y = torch.sin(freq * x + shift) + 0.7 * torch.randn(batch, n, 1, generator=g)
    return x[:, :num_context], y[:, :num_context], x[:, num_context:], y[:, num_context:]


# %%
def mlp(*sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(a, b))
        nn.init.xavier_normal_(layers[-1].weight)
        nn.init.zeros_(layers[-1].bias)
        if i < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


class CrossReader(nn.Module):
    def __init__(self, key_size, value_size):
        super().__init__()
        self.embed_x = nn.Sequential(mlp(1, 64, key_size), nn.LayerNorm(key_size))
        self.query = nn.Linear(key_size, key_size, bias=False)
        self.key = nn.Linear(key_size, key_size, bias=False)
        for layer in (self.query, self.key):
            nn.init.orthogonal_(layer.weight)
        self.value = nn.Linear(value_size, value_size)

    def forward(self, x_target, x_context, r_context):
        q = self.query(self.embed_x(x_target))
        k = self.key(self.embed_x(x_context))
        score = torch.einsum("btd,bcd->btc", q, k)
        weight = torch.exp(score - torch.logsumexp(score, dim=-1, keepdim=True))
        return torch.einsum("btc,bcv->btv", weight, self.value(r_context))


class AttentiveNP(nn.Module):
    def __init__(self, rep=48, key_size=128):
        super().__init__()
        self.encode_pair = mlp(2, rep, rep)
        self.read = CrossReader(key_size, rep)
        self.decode = mlp(rep + 1, rep, rep, 2)

    def forward(self, xc, yc, xt):
        r = self.encode_pair(torch.cat([xc, yc], dim=-1))
        z = self.read(xt, xc, r)
        mean, raw = self.decode(torch.cat([z, xt], dim=-1)).chunk(2, dim=-1)
        return Normal(mean, 0.1 + 0.9 * F.softplus(raw))


# %%
model = AttentiveNP()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=120, eta_min=1e-4)

for it in range(120):
    xc, yc, xt, yt = sample_curves(32, 40, 20)
    loss = -model(xc, yc, xt).log_prob(yt).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    schedule.step()
    if it % 20 == 0 or it == 119:
        print(f"iter {it:4d}   nll {loss.item():+.4f}")

# %%
model.eval()
with torch.no_grad():
    xc, yc, xt, yt = sample_curves(128, 40, 20)
    print("test rmse", (model(xc, yc, xt).mean - yt).pow(2).mean().sqrt().item())
