"""A small GAN on a ring of eight Gaussians. Two networks, two Adam optimizers, alternating steps."""
import argparse
import math

import torch
import torch.nn as nn


def real_batch(n, gen):
    k = torch.randint(0, 8, (n,), generator=gen)
    angle = k * (2 * math.pi / 8)
    centre = torch.stack([torch.cos(angle), torch.sin(angle)], dim=1)
    return 1.4 * centre + 0.08 * torch.randn(n, 2, generator=gen)


class Generator(nn.Module):
    def __init__(self, z_dim, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(z_dim, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 2)
        )

    def forward(self, z):
        return self.body(z)


class Discriminator(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(2, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.body(x).squeeze(1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--z-dim", type=int, default=8)
    ap.add_argument("--seed", type=int, default=3)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed)
    G, D = Generator(args.z_dim, 64), Discriminator(64)
    opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()

    for step in range(args.steps):
        # discriminator: the generator's graph is cut on purpose
        x = real_batch(args.batch, gen)
        fake = G(torch.randn(args.batch, args.z_dim)).detach()
        real_logit, fake_logit = D(x), D(fake)
        d_loss = bce(real_logit, torch.ones_like(real_logit)) + bce(fake_logit, torch.zeros_like(fake_logit))
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()

        # generator: non-saturating loss; D's gradients from here are thrown away by opt_d.zero_grad() above
        logit = D(G(torch.randn(args.batch, args.z_dim)))
        g_loss = bce(logit, torch.ones_like(logit))
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()

        if step % 50 == 0 or step == args.steps - 1:
            with torch.no_grad():
                radius = G(torch.randn(512, args.z_dim)).norm(dim=1)
            print(f"step {step:4d}  d {d_loss.item():.3f}  g {g_loss.item():.3f}  mean radius {radius.mean():.2f} (want 1.40)")


if __name__ == "__main__":
    main()
