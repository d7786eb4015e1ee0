"""Variational auto-encoder. The negative ELBO is a sum over pixels and latent dimensions, averaged over the batch."""
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(1)
SIDE, LATENT, BATCH = 12, 4, 64


def stripes(n):
    """Binary images: a bar of random angle and offset, with 4 % of the pixels flipped."""
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")
    theta = torch.rand(n, 1, 1) * torch.pi
    offset = torch.empty(n, 1, 1).uniform_(-0.5, 0.5)
    distance = (xx * theta.cos() + yy * theta.sin() - offset).abs()
    bar = distance < 0.3
    return (bar ^ (torch.rand(bar.shape) < 0.04)).float().flatten(1)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(SIDE * SIDE, 128), nn.ReLU())
        self.to_mu = nn.Linear(128, LATENT)
        self.to_logvar = nn.Linear(128, LATENT)
        self.dec = nn.Sequential(nn.Linear(LATENT, 128), nn.ReLU(), nn.Linear(128, SIDE * SIDE))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu) if self.training else mu
        return self.dec(z), mu, logvar


def negative_elbo(logits, x, mu, logvar):
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (reconstruction + kl) / x.size(0)  # nats per image


train_set, val_set = random_split(TensorDataset(stripes(1024)), [896, 128])
train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True)
val_loader = DataLoader(val_set, batch_size=BATCH)

model = VAE()
optimizer = optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(1, 11):
    model.train()
    total = 0.0
    for (x,) in train_loader:
        optimizer.zero_grad()
        logits, mu, logvar = model(x)
        loss = negative_elbo(logits, x, mu, logvar)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)

    model.eval()
    val = 0.0
    with torch.no_grad():
        for (x,) in val_loader:
            logits, mu, logvar = model(x)
            val += negative_elbo(logits, x, mu, logvar).item() * len(x)
    print(f"epoch {epoch:2d}  train -ELBO {total / len(train_set):7.2f}  val {val / len(val_set):7.2f}")
