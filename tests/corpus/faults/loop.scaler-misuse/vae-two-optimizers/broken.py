import numpy as np
import torch
from torch import nn
from torch.amp import GradScaler, autocast
from torch.nn import functional as F

PIXELS = 64
LATENT = 6


def digits(n, rng):
    """8x8 pictures of crosses and boxes of different sizes, standardised."""
    out = np.zeros((n, 8, 8))
    for i in range(n):
        r, c = rng.integers(1, 5, 2)
        s = rng.integers(2, 4)
        if rng.random() < 0.5:
            out[i, r, c : c + s] = out[i, r : r + s, c] = 1.0
        else:
            out[i, r : r + s, c : c + s] = 1.0
    out += 0.05 * rng.standard_normal(out.shape)
    return torch.tensor((out - out.mean()) / out.std(), dtype=torch.float32).flatten(1)


class Encoder(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(PIXELS, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.mean = nn.Linear(hidden, LATENT)
        self.log_var = nn.Linear(hidden, LATENT)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.log_var(h)


class Decoder(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(LATENT, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, PIXELS))

    def forward(self, z):
        return self.body(z)


def elbo(x, recon, mean, log_var, beta):
    rebuild = F.mse_loss(recon.float(), x)
    mean, log_var = mean.float(), log_var.float()
    kl = -0.5 * (1 + log_var - mean.square() - log_var.exp()).sum(-1).mean()
    return rebuild + beta * kl / PIXELS, rebuild.item(), kl.item()


def fit(encoder, decoder, data, *, iterations=110, batch=64, beta=0.1):
    enc_opt = torch.optim.SGD(encoder.parameters(), lr=0.2, momentum=0.9)
    dec_opt = torch.optim.Adam(decoder.parameters(), lr=5e-3)
    scaler = GradScaler("cpu", init_scale=2.0**12)
    for it in range(iterations):
        x = data[torch.randint(0, len(data), (batch,))]
        enc_opt.zero_grad(set_to_none=True)
        dec_opt.zero_grad(set_to_none=True)
        with autocast("cpu", dtype=torch.float16):
            mean, log_var = encoder(x)
            z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
            recon = decoder(z)
        loss, rebuild, kl = elbo(x, recon, mean, log_var, beta)
        scaler.scale(loss).backward()
        enc_opt.step()
        scaler.step(dec_opt)
        scaler.update()
        if it % 10 == 0:
            print(f"{it:4d} loss {loss.item():.4f} rebuild {rebuild:.4f} kl {kl:.3f}")


def main():
    torch.manual_seed(40)
    np.random.seed(40)
    data = digits(2000, np.random.default_rng(40))
    encoder, decoder = Encoder(), Decoder()
    encoder.train()
    decoder.train()
    fit(encoder, decoder, data)


if __name__ == "__main__":
    main()
